"""Which weights of another run a run starts from."""

import math
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Validated
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.history.chosen_checkpoint import chosen_step
from example_events import model_built

BEST = Plan(restore_best="on")


def run_of(plan: Plan, monitors: tuple[str, ...], values: Mapping[int, float]) -> Path:
    """A run with a checkpoint and a validation at each step."""
    directory = create(plan)
    (directory / CHECKPOINTS).mkdir()
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        for monitor in monitors:
            writer.write_event(model_built(monitor=monitor))
        for step, value in values.items():
            (directory / CHECKPOINTS / f"step-{step}.index").touch()
            metrics = {"loss": value, "accuracy": value, "x": value}
            writer.write_event(Validated(time=1.0, epoch=1, step=step, metrics=metrics, seconds=0.1))
    return directory


@pytest.mark.parametrize(
    ("monitor", "mode", "step"),
    [
        ("validation_loss", "auto", 4),
        ("validation_loss", "max", 8),
        ("validation_accuracy", "auto", 8),
        ("validation_accuracy", "min", 4),
        ("validation_x", "min", 4),
        ("validation_x", "auto", 12),  # whose name does not tell: the newest one
    ],
)
def test_the_best_step_is_taken_if_its_direction_is_known(monitor: str, mode: str, step: int) -> None:
    plan = Plan(restore_best="on", monitor=monitor, monitor_mode=mode)
    assert chosen_step(run_of(plan, (monitor,), {4: 0.1, 8: 0.9, 12: 0.5})) == step


def test_the_newest_checkpoint_may_be_the_best() -> None:
    assert chosen_step(run_of(BEST, ("validation_loss",), {4: 0.5, 8: 0.9, 12: 0.1, 16: 0.05})) == 16


def test_the_newest_is_taken_where_no_value_is_finite() -> None:
    assert chosen_step(run_of(BEST, ("validation_loss",), {4: math.nan, 8: math.nan, 12: math.nan})) == 12


def test_the_metric_counts_that_was_monitored_last() -> None:
    values = {4: 0.1, 8: 0.9, 12: 0.5}
    assert chosen_step(run_of(BEST, ("validation_loss", "validation_accuracy"), values)) == 8
    assert chosen_step(run_of(BEST, ("validation_accuracy", "validation_loss"), values)) == 4
    assert chosen_step(run_of(BEST, ("validation_unknown_loss", "validation_loss"), values)) == 4


def test_damaged_checkpoints_are_passed_over_and_named() -> None:
    directory = run_of(Plan(), (), {4: 0.1, 8: 0.2, 12: 0.3})
    folder, messages = directory / CHECKPOINTS, list[str]()
    for step in (4, 8, 12):
        (folder / f"step-{step}.data-00000-of-00001").write_bytes(b"data")
        write_checksums(folder, step)
    for step, chosen in ((12, 8), (8, 4)):
        (folder / f"step-{step}.index").write_bytes(b"x")
        assert chosen_step(directory, messages.append) == chosen
    problem = "the checkpoint of step {} is damaged (step-{}.index has 1 bytes instead of 0): step {} is used"
    assert messages == [problem.format(*steps) for steps in ((12, 12, 8), (12, 12, 4), (8, 8, 4))]
    (folder / "step-4.index").write_bytes(b"x")
    with pytest.raises(RunError, match=r"no whole checkpoint: .*step 12 .*step 8 .*step 4 "):
        chosen_step(directory)


def test_a_run_without_checkpoints_has_none() -> None:
    assert chosen_step(create(BEST)) == 0
