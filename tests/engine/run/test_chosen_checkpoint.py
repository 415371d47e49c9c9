"""Which weights of another run a run starts from."""

from contextlib import closing

import pytest

from accel_engine.events import Validated
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.chosen_checkpoint import chosen_step
from accel_engine.run.run_paths import CHECKPOINTS
from example_events import model_built


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
    directory = create(Plan(restore_best="on", monitor=monitor, monitor_mode=mode))
    (directory / CHECKPOINTS).mkdir()
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.write_event(model_built(monitor=monitor))
        for at, value in ((4, 0.1), (8, 0.9), (12, 0.5)):
            (directory / CHECKPOINTS / f"step-{at}.index").touch()
            means = {"loss": value, "accuracy": value, "x": value}
            writer.write_event(Validated(time=1.0, epoch=1, step=at, metrics=means, seconds=0.1))

    assert chosen_step(directory) == step
