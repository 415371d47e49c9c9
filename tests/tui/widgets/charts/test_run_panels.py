"""What the labels below the charts of a run count."""

from dataclasses import replace

import numpy as np

from accel_engine.events import EpochEnded
from accel_engine.run import Chunk, Update
from accel_tui.run.fold import fold
from accel_tui.run.marks import MOST
from accel_tui.run.state import RunState
from accel_tui.widgets.charts.run_panels import scale_of


def ended(epoch: int, step: int) -> EpochEnded:
    return EpochEnded(time=0.0, epoch=epoch, step=step, metrics={}, seconds=1.0)


def at(state: RunState, x: str, *steps: float) -> list[float]:
    scale = scale_of(state, x)  # type: ignore[arg-type]
    assert scale
    return scale.at(np.array(steps)).round(6).tolist()


def test_steps_need_no_scale() -> None:
    assert scale_of(RunState(), "step") is None


def test_epochs_are_those_that_ended() -> None:
    state = fold(RunState(), Update(events=(ended(1, 90), ended(2, 200))))
    assert at(state, "epoch", 0, 45, 90, 145, 200) == [0, 0.5, 1, 1.5, 2]


def test_of_many_epochs_those_that_are_not_kept_are_where_they_were() -> None:
    events = tuple(ended(number, 10 * number) for number in range(1, 3 * MOST))
    state = fold(RunState(), Update(events=events))
    assert at(state, "epoch", 10, 15, 70, 10_000) == [1, 1.5, 7, 1000]


def test_epochs_are_counted_as_the_run_counts_them() -> None:
    state = replace(fold(RunState(), Update(events=(ended(6, 100), ended(7, 200)))), step=200)
    assert at(state, "epoch", 0, 100, 150, 200) == [5, 6, 6.5, 7]


def test_time_is_that_of_the_steps() -> None:
    losses = {"loss": np.ones(10, np.float32)}
    chunks = (Chunk(0, 10, 1000.0, 1005.0, losses), Chunk(10, 10, 1065.0, 1070.0, losses))
    state = fold(RunState(), Update(chunks=chunks))
    assert at(state, "time", 0, 10, 20) == [0, 5, 70]
