"""What a value axis leaves out, against counting step by step."""

import math

import numpy as np
import pytest

from accel_engine.run.store.buckets import downsample
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import Axis, LogAxis
from accel_tui.widgets.chart.chart_header import Hidden, describe_hidden, hidden_points, hidden_steps
from accel_tui.widgets.chart.chart_view import ChartOptions, ChartSeries
from accel_tui.widgets.chart.value_axis import VisibleValues, axis_of

ALL_LOG = ChartOptions(log=True, clip=False)


def series(values: np.ndarray, width: int = 1) -> ChartSeries:
    values = values.astype(np.float32)
    return ChartSeries("loss", RecordedCurve.of(downsample(values, width), 0, len(values), width))


def noisy(count: int = 1000, *spikes: float) -> np.ndarray:
    values = 1 + np.random.default_rng(3).uniform(-0.2, 0.2, count)
    values[100 : 100 + len(spikes)] = spikes
    return values


def test_the_fence_is_that_of_quantiles_and_never_beyond_the_values() -> None:
    values = np.arange(101.0)
    assert VisibleValues.of(values, values).fence() == (0, 100)
    values[100] = 1e6
    assert VisibleValues.of(values, values).fence() == (0, pytest.approx(95 + 0.5 * 90))
    values[0] = -1e6
    assert VisibleValues.of(values, values).fence() == (pytest.approx(5 - 0.5 * 90), pytest.approx(95 + 0.5 * 90))
    assert VisibleValues.of(np.array([2.0]), np.array([3.0])).fence() == (2, 3)


def test_the_fence_of_logarithms_is_the_logarithm_of_theirs() -> None:
    values = np.random.default_rng(5).lognormal(0, 2, 500)
    values[:2] = 1e-12, 1e12
    straight = VisibleValues.of(np.log(values), np.log(values)).fence()
    assert VisibleValues.of(values, values).fence(log=True) == pytest.approx(tuple(math.exp(end) for end in straight))


def test_a_steady_fall_is_wholly_on_the_axis_and_spikes_are_not() -> None:
    fall = 2 * np.exp(-np.arange(1000) / 300)
    options = ChartOptions(clip=True)
    assert axis_of((series(fall),), None, options).high == 2
    axis = axis_of((series(noisy(1000, 50.0, -9.0)),), None, options)
    assert 0 <= axis.low < 0.8
    assert 1.2 < axis.high < 2


@pytest.mark.parametrize("width", [1, 4, 64])
def test_what_is_hidden_is_counted_exactly_for_steps_and_at_least_for_buckets(width: int) -> None:
    values = noisy(1000, 9.0, 8.0, -4.0, math.nan)
    found = hidden_steps(series(values, width), 0, math.inf, 0.5, 2.0)
    assert found.exact == (width == 1)
    if width == 1:
        assert found == Hidden(2, 1)
    else:
        assert 1 <= found.above <= 2
        assert found.below == 1
    assert hidden_steps(series(values, width), 0, math.inf, 100, 200).below == 999
    assert hidden_steps(series(values, width), 0, math.inf, -200, -100).above == 999


def test_only_what_is_in_the_window_is_counted() -> None:
    values = noisy(1000, 9.0, 8.0)
    assert hidden_steps(series(values), 101, 200, 0, 2) == Hidden(1, 0)
    points = ChartSeries("validation", points=((5, 9.0), (150, 7.0), (160, math.inf)))
    assert hidden_points(points, 101, 200, 0, 2) == Hidden(1, 0)
    assert hidden_steps(points, 101, 200, 0, 2) == Hidden()


def test_what_is_hidden_is_told_in_many_words_and_in_few() -> None:
    one = series(noisy(1024, 20.0, 20.0, 20.0))
    assert describe_hidden((one,), Axis(0, 1024), Axis(0, 12.4), clipped=True) == [
        "3 steps hidden above 12.4",
        "3 steps hidden",
        "3 hidden",
    ]
    both = series(noisy(1024, 20.0, -5.0), 8)
    assert describe_hidden((both,), Axis(0, 1024), Axis(0, 12.4), clipped=True)[0] == (
        "2+ steps hidden above 12.4 or below 0"
    )
    assert describe_hidden((series(noisy(100)),), Axis(0, 100), Axis(0, 2), clipped=True) == []


def test_what_has_no_logarithm_is_told() -> None:
    values = noisy(1000, 0.0, -3.0)
    axis = axis_of((series(values),), None, ChartOptions(log=True))
    assert isinstance(axis, LogAxis)
    assert 0.5 < axis.low <= values[values > 0].min()
    assert describe_hidden((series(values),), Axis(0, 1000), axis, clipped=False)[0] == "2 steps hidden at or below 0"
    nothing = axis_of((series(np.zeros(10)),), None, ChartOptions(log=True))
    assert describe_hidden((series(np.zeros(10)),), Axis(0, 10), nothing, clipped=False)[-1] == "10 hidden"


def test_an_axis_that_has_all_values_hides_none() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        values = rng.lognormal(0, rng.uniform(0.01, 4), 300)
        for width in (1, 8):
            one = (series(values, width),)
            assert describe_hidden(one, Axis(0, 300), axis_of(one, None, ALL_LOG), clipped=False) == []


@pytest.mark.parametrize("seed", range(40))
def test_no_more_steps_are_hidden_than_there_are_and_no_validation_is_counted_as_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(1, 400)), int(2 ** rng.integers(0, 4))
    values = rng.lognormal(0, 2, count)
    points = tuple((float(step), float(rng.lognormal(0, 2))) for step in range(0, count, 7))
    one = (series(values, width), ChartSeries("validation", points=points))
    x, y = Axis(0, count), axis_of(one, None, ChartOptions(log=False), rows=9)
    low, high = y.low - 1e-6, y.high * (1 + 1e-6)
    steps = sum((hidden_steps(each, 0, count, low, high) for each in one), Hidden())
    shown = sum((hidden_points(each, 0, count, low, high) for each in one), Hidden())
    assert steps.above + steps.below <= int(((values > high) | (values < low)).sum())
    assert shown == Hidden(sum(value > high for _, value in points), sum(value < low for _, value in points))
    words = describe_hidden(one, x, y, clipped=True)
    assert (" step" in "".join(words)) == bool(steps.above + steps.below)
    assert (" point" in "".join(words)) == bool(shown.above + shown.below)
    assert bool(words) == bool(steps.above + steps.below + shown.above + shown.below)


def test_where_nothing_is_clipped_nothing_is_beyond_the_axis() -> None:
    rng = np.random.default_rng(11)
    for _ in range(100):
        values = rng.lognormal(0, rng.uniform(0.01, 4), int(rng.integers(1, 2000)))
        values[: len(values) // 30] *= 40
        points = ChartSeries("validation", points=tuple((float(step), float(rng.lognormal(0, 3))) for step in range(9)))
        for width, rows in ((1, 0), (1, 9), (8, 14)):
            both = (series(values, width), points)
            assert (
                describe_hidden(
                    both,
                    Axis(0, len(values)),
                    axis_of(both, None, ChartOptions(log=False, clip=False), rows=rows),
                    clipped=True,
                )
                == []
            )
