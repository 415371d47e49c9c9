"""Range of values that a chart shows."""

import math

import numpy as np

from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.chart_options import ChartOptions
from accel_tui.widgets.chart.clipping import fence
from accel_tui.widgets.chart.log_axis import log_axis
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.chart.value_axis import value_axis


def axis_of(
    series: tuple[Series, ...],
    window: tuple[int, int] | None,
    options: ChartOptions,
    bounds: tuple[float | None, float | None] = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
) -> Axis:
    """The value axis of a chart: of all visible values, except those that the options leave out.

    Args:
        series: The series.
        window: First visible step, and the step after the last; ``None`` for all.
        options: How curves are drawn.
        bounds: Values to include.
        previous: The axis until now, with the same options and as many rows.
        rows: Rows between the labels at the ends; 0 if only the ends have labels.
    """
    span = window or (0, math.inf)
    if options.log or options.clip:
        lows, highs = _values(series, *span)
        if options.log:  # of a bucket with both, only the maximum certainly has a logarithm
            lows, highs = (values[values > 0] for values in (np.where(lows > 0, lows, highs), highs))
        low, high = (lows.min(initial=math.inf), highs.max(initial=-math.inf))
        if low > high:
            low = high = math.nan
        elif options.clip:
            low, high = fence(lows, highs, log=options.log)
        return (log_axis if options.log else value_axis)(low, high, bounds, previous, rows)
    return value_axis(*extremes(series, *span), bounds, previous, rows)


def steps_of(series: tuple[Series, ...]) -> int:
    """Number of steps of the longest series."""
    ends = [math.ceil(each.points[-1][0]) for each in series if each.points]
    return max([*ends, *(each.curve.end_step for each in series)], default=0)


def extremes(series: tuple[Series, ...], first: float = 0, last: float = math.inf) -> tuple[float, float]:
    """Minimum and maximum of all series in a range of steps; NaN if there is none."""
    ends = [end for each in series if each.curve.end_step for end in each.curve_in(first, last).extremes(first, last)]
    ends += [y for each in series for _, y in each.within(first, last) if math.isfinite(y)]
    known = [end for end in ends if not math.isnan(end)]
    return min(known, default=math.nan), max(known, default=math.nan)


def _values(series: tuple[Series, ...], first: float, last: float) -> tuple[Floats, Floats]:
    """Minima and maxima of all buckets in a range of steps, and the points."""
    points = np.array([y for each in series for x, y in each.points if first <= x < last and math.isfinite(y)])
    lows, highs = [points], [points]
    for each in series:
        curve = each.curve_in(first, last)
        start, stop = curve.span(first, last)
        lows.append(curve.low[start:stop])
        highs.append(curve.high[start:stop])
    low, high = np.concatenate(lows), np.concatenate(highs)
    known = ~np.isnan(low)
    return low[known], high[known]
