"""Advice in words."""

from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.advice import Coverage, Evidence
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import options_text
from accel_engine.run import RunInfo, Status
from accel_tui.formatting.advice import change_command, coverage_text, cure_text, evidence_text, missing_text
from tui.stand_in_findings import SLOW

PLAN = Plan(model="mlp", epochs=3)
RUN = RunInfo("k3fp-mlp", Path("k3fp-mlp"), PLAN, PLAN.to_mapping(), 0.0, "lab", 1, Status.FINISHED)
SCRIPT = replace(RUN, plan=None, script="python train.py")


def test_what_was_looked_at_and_what_was_not() -> None:
    assert coverage_text(Coverage(1200, 1, 0, 45)) == "1,200 steps, 1 epoch, 45 readings"
    assert coverage_text(Coverage()) == "no records"
    assert missing_text(Coverage(missing=("layers", "the plan"))) == "Not judged, as not recorded: layers, the plan."
    assert missing_text(Coverage()) == ""


@pytest.mark.parametrize(
    ("steps", "text"),
    [(None, "It rises"), ((1000, 1200), "It rises (steps 1,000 to 1,199)"), ((7, 8), "It rises (step 7)")],
)
def test_evidence_has_its_steps(steps: tuple[int, int] | None, text: str) -> None:
    assert evidence_text(Evidence("It rises", steps=steps)) == text


def test_the_command_continues_a_run_where_it_is_allowed_else_trains_anew() -> None:
    stopped, changes = replace(RUN, status=Status.STOPPED), {"xla": "on", "patience": None}
    assert change_command(stopped, changes) == "accel-tui continue k3fp-mlp --xla on --patience auto"
    assert change_command(stopped, {"batch_size": 256}).startswith("accel-tui train ")
    for status in (Status.RUNNING, Status.FINISHED):  # it would be refused
        assert change_command(replace(RUN, status=status), changes) == "accel-tui train --model mlp --epochs 3 --xla on"
    assert change_command(RUN, {"batch_size": 256}) == "accel-tui train --model mlp --epochs 3 --batch-size 256"
    assert change_command(RUN, {}) == ""
    assert change_command(SCRIPT, {"xla": "on"}) == ""
    with pytest.raises(PlanError, match="batch_size"):
        change_command(RUN, {"batch_size": -1})


def test_what_has_no_effect_with_a_cure_is_left_out_of_the_command() -> None:
    plan = PLAN.replace(optimizer="sgd", momentum=0.9)
    run = replace(RUN, plan=plan, plan_values=plan.to_mapping())
    assert change_command(run, {"optimizer": "adamw", "weight_decay": 0.01}) == (
        "accel-tui train --model mlp --epochs 3 --optimizer adamw --weight-decay 0.01"
    )


def test_options_of_lists_are_joined() -> None:
    assert options_text({"devices": ["gpu:0", "gpu:1"]}) == "--devices gpu:0,gpu:1"


def test_scripts_have_words_of_their_own_where_the_cure_has_some() -> None:
    cure, same = SLOW.cures
    assert cure_text(cure, RUN) == "Compile the steps with XLA."
    assert cure_text(cure, SCRIPT) == "Pass jit_compile=True to compile()."
    assert cure_text(same, SCRIPT) == same.text
