"""Runs in words."""

from pathlib import Path

import pytest

from accel_engine.run import RunInfo, Status
from accel_engine.run.engine.memory_loss import MemoryLoss
from accel_tui.cli.event_text import means
from accel_tui.formatting.runs import lost_reason, metric_ranges
from accel_tui.widgets.run.run_outcome import results


@pytest.mark.parametrize(
    ("loss", "script", "words"),
    [
        (None, "", "the training process exited unexpectedly"),
        (MemoryLoss.KILLED, "", "the system probably killed the training process, as memory ran out"),
        (MemoryLoss.KILLED, "loop.py", "the system probably killed the script, as memory ran out"),
        (MemoryLoss.CRASHED, "", "the training process crashed, as memory ran out"),
    ],
)
def test_a_run_that_was_lost_as_memory_ran_out_says_so(loss: MemoryLoss | None, script: str, words: str) -> None:
    info = RunInfo("r", Path("r"), None, {}, 0.0, "h", 1, Status.LOST, script=script, memory_loss=loss)
    assert lost_reason(info) == words


def test_a_lost_run_says_what_ended_its_engine() -> None:
    info = RunInfo("r", Path("r"), None, {}, 0.0, "h", 1, Status.LOST, last_words="Unknown flag in XLA_FLAGS: --a")
    assert lost_reason(info) == "the training process exited unexpectedly: Unknown flag in XLA_FLAGS: --a"


SCORES = {"loss": 0.5, "f1_score_0": 0.25, "f1_score_1": 0.75, "f1_score_2": 0.5, "top_5": 0.9, "acc_2": 0.1}


def test_of_a_metric_with_several_values_the_least_and_the_largest_are_told() -> None:
    assert dict(metric_ranges(SCORES)) == {"loss": (0.5,), "f1_score": (0.25, 0.75), "top_5": (0.9,), "acc_2": (0.1,)}
    assert means(SCORES) == "loss 0.5000  f1 score 0.2500 to 0.7500  top 5 0.9000  acc 2 0.1000"


def test_training_and_validation_are_told_apart() -> None:
    metrics = {"loss": 0.5, **{f"validation_{name}": value for name, value in SCORES.items()}}
    assert results(metrics).startswith(
        "Last epoch: loss 0.5000; validation: loss 0.5000, f1 score 0.2500 to 0.7500, top 5 0.9000"
    )
