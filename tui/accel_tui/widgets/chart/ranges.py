"""Which values a chart has room for: the ends of its value axis."""

import math

import numpy as np

from accel_tui.run.curve import Floats
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.chart_options import ChartOptions
from accel_tui.widgets.chart.clipping import fence
from accel_tui.widgets.chart.log_axis import log_axis
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.chart.value_axis import value_axis


def axis_of(
    series: tuple[Series, ...],
    window: tuple[int, int] | None,
    lens: ChartOptions,
    bounds: tuple[float | None, float | None] = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
) -> Axis:
    """The value axis of a chart: of all values that are shown, unless the lens leaves some out.

    Args:
        series: What is drawn.
        window: The first step that is shown, and the step after the last; ``None`` for all there are.
        lens: How it is looked at.
        bounds: What it is to reach whatever the values are.
        previous: The axis until now, through the same lens and of as many rows.
        rows: Rows between the labels at its two ends; 0 where the ends alone have labels.
    """
    span = window or (0, math.inf)
    if lens.log or lens.clip:
        lows, highs = _values(series, *span)
        if lens.log:  # of a bucket that has both, only the highest value is known to have a logarithm
            lows, highs = (values[values > 0] for values in (np.where(lows > 0, lows, highs), highs))
        low, high = (lows.min(initial=math.inf), highs.max(initial=-math.inf))
        if low > high:
            low = high = math.nan
        elif lens.clip:
            low, high = fence(lows, highs, log=lens.log)
        return (log_axis if lens.log else value_axis)(low, high, bounds, previous, rows)
    return value_axis(*extremes(series, *span), bounds, previous, rows)


def steps_of(series: tuple[Series, ...]) -> int:
    """How many steps the longest series spans."""
    ends = [math.ceil(one.points[-1][0]) for one in series if one.points]
    return max([*ends, *(one.curve.count for one in series)], default=0)


def extremes(series: tuple[Series, ...], first: float = 0, last: float = math.inf) -> tuple[float, float]:
    """The lowest and the highest value of all series in a range of steps; NaN when there is none."""
    ends = [end for one in series if one.curve.count for end in one.seen(first, last).extremes(first, last)]
    ends += [y for one in series for _, y in one.within(first, last) if math.isfinite(y)]
    known = [end for end in ends if not math.isnan(end)]
    return min(known, default=math.nan), max(known, default=math.nan)


def _values(series: tuple[Series, ...], first: float, last: float) -> tuple[Floats, Floats]:
    """The lowest and the highest value of every bucket of all series in a range of steps, and their points."""
    points = np.array([y for one in series for x, y in one.points if first <= x < last and math.isfinite(y)])
    lows, highs = [points], [points]
    for one in series:
        curve = one.seen(first, last)
        start, stop = curve.span(first, last)
        lows.append(curve.low[start:stop])
        highs.append(curve.high[start:stop])
    low, high = np.concatenate(lows), np.concatenate(highs)
    known = ~np.isnan(low)
    return low[known], high[known]
