"""In which way a cure is applied, and what is refused; without engines."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.advice.cures.apply_cure import Method, apply
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.errors import AccelError, RunError
from accel_engine.events import CommandAnswered, Outcome, PlanChanged, RunEnded
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import changed_plan, options_text
from accel_engine.plan.live_changes import command_arguments
from accel_engine.plan.scaled_rate import with_planned_rate
from accel_engine.process import run_change
from accel_engine.process.run_change import return_to
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.directory.run_paths import checkpoint_steps, latest_checkpoint
from accel_engine.run.runs.creation import create_recorded


def ended(plan: Plan, outcome: Outcome, *steps: int) -> Path:
    """An ended run with files of checkpoints."""
    directory = create(plan)
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.end(RunEnded(time=1.0, outcome=outcome, steps=max(steps, default=0), epochs=0, seconds=1.0))
    save(directory, *steps)
    return directory


def save(directory: Path, *steps: int) -> None:
    """Write files of checkpoints."""
    folder = directory / "checkpoints"
    folder.mkdir()
    for step in steps:
        (folder / f"step-{step}.index").write_bytes(b"i")
        (folder / f"step-{step}.data-00000-of-00001").write_bytes(b"d")
        write_checksums(folder, step)


def changed_in(directory: Path) -> list[Any]:
    with closing(RunReader(directory)) as reader:
        return [event for event in reader.poll().events if isinstance(event, PlanChanged)]


def test_a_stopped_run_continues_with_the_changed_plan() -> None:
    directory, launched = ended(Plan(model="mlp"), Outcome.STOPPED, 23), []
    applied = apply(directory, {"clip_norm": 1.0}, finding="spikes", launch=launched.append)
    assert launched == [directory]
    assert (applied.method, applied.step, applied.before) == (Method.CONTINUED, 23, {"clip_norm": None})
    assert applied.text == f"run {directory.name} was continued from step 23 with --clip-norm 1.0"
    (event,) = changed_in(directory)
    assert (event.step, event.changes, event.reason) == (23, {"clip_norm": 1.0}, "advice spikes")
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values["clip_norm"] == 1.0


@pytest.mark.parametrize(
    ("changes", "outcome", "why"),
    [
        ({"batch_size": 128}, Outcome.STOPPED, "batch_size cannot change within a run"),
        ({"clip_norm": 1.0}, Outcome.FINISHED, "cannot be continued"),
    ],
)
def test_otherwise_a_new_run_has_it(changes: dict[str, Any], outcome: Outcome, why: str) -> None:
    directory, launched = ended(Plan(model="mlp"), outcome, 23), []
    applied = apply(directory, changes, launch=launched.append)
    assert applied.method is Method.NEW_RUN
    assert launched == [applied.directory]
    assert applied.directory != directory
    assert why in applied.text
    with closing(RunReader(applied.directory)) as reader:
        assert reader.info().plan_values.items() >= changes.items()
    assert changed_in(applied.directory)[0].reason == f"advice, from run {directory.name}"
    assert changed_in(directory) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "changes no field"),
        ({"loss_rate": 1}, "no field loss_rate"),
        ({"model": "mlp"}, "has these settings already"),
        ({"clip_norm": -1.0}, "must be a number above 0"),
        ({"devices": ("gpu:7",)}, "gpu:7"),
    ],
)
def test_what_is_impossible_changes_nothing(changes: dict[str, Any], words: str) -> None:
    directory = ended(Plan(model="mlp"), Outcome.STOPPED, 23)
    with pytest.raises(AccelError, match=words):
        apply(directory, changes, launch=pytest.fail)
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values == Plan(model="mlp").absolute().to_mapping()


def test_a_script_is_not_changed() -> None:
    directory = create_recorded({"name": "", "model": "m", "data": "d"}, "python train.py")
    with pytest.raises(RunError, match="recorded by a script"):
        apply(directory, {"xla": "on"}, launch=pytest.fail)


def test_a_live_run_without_a_step_has_no_checkpoint_to_continue_from() -> None:
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        with pytest.raises(RunError, match="has taken no step yet"):
            apply(directory, {"clip_norm": 1.0}, launch=pytest.fail)


def test_a_cure_by_command_begins_with_the_answer_not_with_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:

        def train(first: int, last: int) -> None:
            writer.write_chunk(first, 0.0, 1.0, {"loss": np.ones(last - first, np.float32)})

        def send(_: Path, name: str, *__: object, **___: object) -> str:
            if name == "checkpoint":
                save(directory, 20)
                train(20, 500)
            step = 20 if name == "checkpoint" else 500
            writer.write_event(CommandAnswered(time=1.0, command=name, who="", obeyed=True, answer="done", step=step))
            if name == "learning_rate":
                train(500, 510)
            return "done"

        monkeypatch.setattr(run_change, "send", send)
        writer.begin()
        train(0, 20)
        applied = apply(directory, {"learning_rate": 0.01}, launch=pytest.fail)
    assert (applied.method, applied.checkpoint, applied.step) == (Method.COMMAND, 20, 500)


@pytest.mark.parametrize(
    ("plan", "changes", "arguments"),
    [
        (Plan(model="mlp"), {"learning_rate": 0.01}, {"learning_rate": 0.01}),
        (Plan(model="mlp", schedule="cosine"), {"learning_rate": 0.01}, None),
        (Plan(model="mlp"), {"validation_every": "500 steps"}, {"validation_every": 500.0}),
        (Plan(model="mlp", validation="end"), {"validation_every": "500 steps"}, None),
        (Plan(model="mlp"), {"learning_rate": 0.01, "clip_norm": 1.0}, None),
    ],
)
def test_commands_change_what_they_can(plan: Plan, changes: dict[str, Any], arguments: Any) -> None:
    assert command_arguments(plan, 0, changes) == arguments


def test_a_run_returns_to_the_checkpoint_before_a_cure() -> None:
    directory = ended(Plan(model="mlp"), Outcome.STOPPED, 10, 20, 30)
    assert return_to(directory, 25) == 30  # it has no checkpoint of that step any more
    assert return_to(directory, 20) == 20
    assert checkpoint_steps(directory) == [10, 20]
    assert latest_checkpoint(directory) == 20


def test_changes_are_shown_as_options() -> None:
    assert options_text({"batch_size": 128, "devices": ("gpu:0", "gpu:1")}) == "--batch-size 128 --devices gpu:0,gpu:1"


def test_a_changed_plan_has_no_field_without_effect() -> None:
    plan = changed_plan(Plan(model="mlp", optimizer="sgd", momentum=0.9), {"optimizer": "adamw"})
    assert (plan.optimizer, plan.momentum) == ("adamw", None)


def test_a_plan_gets_the_rate_that_it_multiplies_to_that_of_the_optimizer() -> None:
    plan = Plan(model="mlp", rate_scaling="linear", learning_rate_factor=0.5)
    assert with_planned_rate({"learning_rate": 0.02, "xla": "on"}, plan, 4) == {"learning_rate": 0.01, "xla": "on"}
    assert with_planned_rate({"learning_rate": None}, plan, 4) == {"learning_rate": None}
    assert with_planned_rate({"learning_rate": 0.3}, Plan(model="mlp"), 4) == {"learning_rate": 0.3}


def test_a_run_continues_with_the_rate_of_the_optimizer() -> None:
    directory = ended(Plan(model="mlp", learning_rate_factor=0.5), Outcome.STOPPED, 23)
    applied = apply(directory, {"learning_rate": 0.01}, launch=lambda _: None)
    assert (applied.changes, applied.before) == ({"learning_rate": 0.02}, {"learning_rate": None})


def test_a_run_that_had_failed_is_remembered_with_what_its_finding_is_about() -> None:
    directory = ended(Plan(model="mlp"), Outcome.FAILED, 23)
    applied = apply(directory, {"remat": "on"}, purpose=Quantity.MEMORY, launch=lambda _: None)
    assert applied.had_failed
    assert applied.judged_by is None
