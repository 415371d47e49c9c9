"""What is known of the learning rate, from the steps of a run and from what it told."""

import math

import numpy as np
import pytest

from accel_engine.events import Event, LearningRateChanged, RunStarted
from accel_engine.run import Chunk, Update
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.marks import MarkKind
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart_panels.run_panels import panel_series, panels_of


def told(step: int, rate: float, schedule: str = "") -> LearningRateChanged:
    return LearningRateChanged(time=0.0, step=step, learning_rate=rate, schedule=schedule)


def resumed(step: int) -> RunStarted:
    return RunStarted(time=0.0, run="r", name="", plan={}, first_step=step, pid=1, host="h", versions={})


def steps(first: int, count: int, rates: object = None) -> Chunk:
    series = {"loss": np.ones(count, np.float32)}
    if rates is not None:
        series["learning_rate"] = np.broadcast_to(np.asarray(rates, np.float32), count)
    return Chunk(first, count, 0.0, 1.0, series)


def after(state: RunState, *events: Event, chunks: tuple[Chunk, ...] = ()) -> RunState:
    return apply_update(state, Update(events=events, chunks=chunks))


def drawn(state: RunState) -> list[float]:
    (panel,) = (panel for panel in panels_of(state, frozenset()) if panel.name == "learning_rate")
    (series,) = panel_series(state, panel)
    return series.curve.means.round(6).tolist()


def test_what_was_recorded_at_each_step_is_drawn() -> None:
    state = after(RunState(), told(0, 0.5, "ExponentialDecay"), chunks=(steps(0, 4, [0.5, 0.4, 0.3, 0.2]),))
    assert drawn(state) == [0.5, 0.4, 0.3, 0.2]
    assert (state.learning_rate, state.schedule) == (0.2, "ExponentialDecay")


def test_a_step_has_the_rate_that_was_set_last() -> None:
    state = after(RunState(), told(0, 0.5), told(2, 0.1), told(2, 0.3), chunks=(steps(0, 4),))
    assert state.learning_rates == ((0, 0.5), (2, 0.3))
    state = after(state, resumed(2), told(2, 0.2), chunks=(steps(2, 2),))
    assert state.learning_rates == ((0, 0.5), (2, 0.2))


def test_what_nobody_told_is_a_gap() -> None:
    state = after(RunState(), chunks=(steps(0, 2), steps(2, 2, 0.25)))
    assert state.learning_rates == ()
    np.testing.assert_array_equal(drawn(state), [math.nan, math.nan, 0.25, 0.25])


def test_a_rate_that_was_set_is_the_present_one_before_a_step_is_taken_with_it() -> None:
    state = after(RunState(), told(0, 0.5), chunks=(steps(0, 4, 0.5),))
    assert after(state, told(4, 0.1)).learning_rate == 0.1
    state = after(state, told(4, 0.1), chunks=(steps(4, 1, 0.1),))
    assert state.learning_rate == 0.1


@pytest.mark.parametrize("rate", [0.001, 0.0095])
def test_going_on_at_the_same_rate_is_no_change_of_it(rate: float) -> None:
    averaged = np.nextafter(np.float32(rate), np.float32(1))  # as of three replicas
    state = after(RunState(), told(0, rate), chunks=(steps(0, 4, averaged),))
    state = after(state, resumed(4), told(4, rate))
    assert not {MarkKind.LEARNING_RATE_DOWN, MarkKind.LEARNING_RATE_UP} & state.marks.keys()


def test_a_rate_that_a_command_sets_is_marked_and_one_of_a_schedule_is_not() -> None:
    state = after(RunState(), told(0, 0.5, "CosineDecay"), chunks=(steps(0, 4, 0.5),))
    state = after(state, resumed(4), told(4, 0.1, "CosineDecay"))
    assert MarkKind.LEARNING_RATE_DOWN not in state.marks
    assert after(state, told(4, 0.01)).marks[MarkKind.LEARNING_RATE_DOWN].steps == (4,)


def test_there_is_one_chart_of_it() -> None:
    state = after(RunState(), told(0, 0.5), chunks=(steps(0, 4, 0.5),))
    titles = [panel.title for panel in panels_of(state, frozenset())]
    assert titles == ["loss", "steps/s", "learning rate"]
