"""Runs on one axis of epochs or of time."""

import numpy as np
import pytest

from accel_engine.events import EpochEnded
from accel_engine.run import Chunk, Update
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart_panels.shared_axis import TICKS, SharedAxis


def run(losses: np.ndarray, *, seconds: float, epochs: int = 1) -> RunState:
    """A run whose steps all took equally long, as its epochs did."""
    count = len(losses)
    chunks = [
        Chunk(step, 1, step * seconds / count, (step + 1) * seconds / count, {"loss": losses[step : step + 1]})
        for step in range(count)
    ]
    events = [
        EpochEnded(time=0.0, epoch=epoch, step=epoch * count // epochs, metrics={}, seconds=1.0)
        for epoch in range(1, epochs + 1)
    ]
    return apply_update(RunState(), Update(events=tuple(events), chunks=tuple(chunks)))


def axis_of(x: str, *states: RunState) -> SharedAxis:
    axis = SharedAxis.of(states, x, None)  # type: ignore[arg-type]
    assert axis
    return axis


def test_where_steps_are_the_axis_there_is_no_other() -> None:
    assert SharedAxis.of([RunState()], "step", None) is None
    assert axis_of("time", RunState()).ticks == 0


def test_by_time_each_tick_says_what_its_run_measured_then() -> None:
    fast, slow = np.full(1000, 0.5, np.float32), np.arange(10, dtype=np.float32)
    fast[500] = 99.0
    axis = axis_of("time", run(fast, seconds=10.0), run(slow, seconds=20.0))
    assert TICKS / 3 < axis.ticks <= TICKS
    assert axis.ticks * axis.unit == pytest.approx(20.0, rel=1e-2)
    quick, held = (
        axis.place_on_axis(at, ChartSeries("a", state.curves["loss"], points=((4, 0.25),)))
        for at, state in enumerate(axis.states)
    )
    assert quick.curve.end_step * axis.unit == pytest.approx(10.0, rel=1e-2)
    assert np.nanmax(quick.curve.high) == 99.0
    assert int(np.nanargmax(quick.curve.high)) * axis.unit == pytest.approx(5.0, abs=0.02)
    assert not np.isnan(held.curve.means).any()
    assert [held.curve.at(int(second / axis.unit)) for second in (1, 7, 19.5)] == [
        (value, value, value) for value in (0.0, 3.0, 9.0)
    ]
    assert [point[0] * axis.unit for point in held.points] == [pytest.approx(10.0)]
    assert (quick.curve.last_value, quick.is_resampled, quick.curve.gaps) == (0.5, True, 0)


def test_many_steps_of_a_tick_are_its_mean_between_their_extremes() -> None:
    losses = np.tile(np.array([1.0, 3.0], np.float32), 20_000)
    axis = axis_of("time", run(losses, seconds=1.0))
    curve = axis.place_on_axis(0, ChartSeries("a", axis.states[0].curves["loss"])).curve
    assert curve.end_step <= TICKS
    assert (np.nanmin(curve.low), np.nanmax(curve.high)) == (1.0, 3.0)
    assert curve.means[10:-10] == pytest.approx(2.0, abs=0.3)


def test_by_epoch_runs_of_other_batch_sizes_are_at_one_place_at_the_end_of_each() -> None:
    axis = axis_of("epoch", run(np.ones(400, np.float32), seconds=1, epochs=4), run(np.ones(40), seconds=9, epochs=4))
    ends = [
        axis.place_on_axis(at, ChartSeries("a", points=((steps - 1, 0.0),))).points
        for at, steps in enumerate((300, 30))
    ]
    assert ends[0] == ends[1]
    assert ends[0][0][0] * axis.unit == pytest.approx(3.0)
    assert axis.label(round(3 / axis.unit)) == "epoch 3"
    laid = [axis.place_on_axis(at, ChartSeries("a", state.curves["loss"])) for at, state in enumerate(axis.states)]
    assert laid[0].curve.end_step == laid[1].curve.end_step == axis.ticks


def test_gaps_are_gaps_and_runs_that_have_ended_are_laid_out_once() -> None:
    losses = np.ones(100, np.float32)
    losses[40:60] = np.nan
    axis = axis_of("time", run(losses, seconds=10.0))
    again = SharedAxis.of(axis.states, "time", axis)
    assert again
    assert again.scale is axis.scale
    one, other = (
        each.place_on_axis(0, ChartSeries("a", axis.states[0].curves["loss"])).curve for each in (axis, again)
    )
    assert one is other
    assert np.isnan(one.means[int(4.1 / axis.unit) : int(5.9 / axis.unit)]).all()
