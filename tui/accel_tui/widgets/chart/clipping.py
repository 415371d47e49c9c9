"""Values hidden by the value axis: outliers, and values without a logarithm.

Of a bucket only the extremes are known, so that with several steps per bucket the counts are lower bounds.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart.axes import Axis, labels
from accel_tui.widgets.chart.raster import EDGE
from accel_tui.widgets.chart.series import Series

_QUANTILE = 0.05  # quantile on either side, a common choice
_MARGIN = 0.5  # share of the range between the quantiles: a steadily falling curve is not clipped


def fence(lows: Floats, highs: Floats, *, log: bool = False) -> tuple[float, float]:
    """Minimum and maximum without outliers.

    Outliers are beyond the quantiles 0.05 and 0.95 by more than half of their distance.

    Args:
        lows: Minimum of each bucket, at least one, without NaN.
        highs: Maximum of each bucket, without NaN.
        log: Whether distances are logarithmic; all values must be positive then.
    """
    forth, back = (math.log, math.exp) if log else (float, float)
    low, high = forth(_at(lows, _QUANTILE)), forth(_at(highs, 1 - _QUANTILE))
    margin = _MARGIN * (high - low)
    return max(float(lows.min()), back(low - margin)), min(float(highs.max()), back(high + margin))


def _at(values: Floats, quantile: float) -> float:
    index = round(quantile * (len(values) - 1))
    return float(np.partition(values, index)[index])


@dataclass(frozen=True, slots=True)
class Hidden:
    """Number of values beyond an axis.

    Attributes:
        above: Values above it, at least.
        below: Values below it, at least.
        total: All values.
        exact: Whether the counts are exact.
    """

    above: int = 0
    below: int = 0
    total: int = 0
    exact: bool = True

    def __add__(self, other: "Hidden") -> "Hidden":
        """The sum of both."""
        exact = self.exact and other.exact
        return Hidden(self.above + other.above, self.below + other.below, self.total + other.total, exact)


def hidden_steps(series: Series, first: float, last: float, low: float, high: float) -> Hidden:
    """Count the steps from ``first`` to before ``last`` whose value is beyond ``low`` to ``high``."""
    curve = series.curve_in(first, last)
    if not curve.end_step:
        return Hidden()
    span = slice(*curve.span(first, last))
    lows, highs, finite = curve.low[span], curve.high[span], curve.finite[span]
    above = int(np.where(lows > high, finite, highs > high).sum())
    below = int(np.where(highs < low, finite, lows < low).sum())
    return Hidden(above, below, int(finite.sum()), curve.width == 1)


def hidden_points(series: Series, first: float, last: float, low: float, high: float) -> Hidden:
    """Count the points of those steps, such as validations, beyond ``low`` to ``high``."""
    values = [value for _, value in series.within(first, last) if math.isfinite(value)]
    return Hidden(sum(value > high for value in values), sum(value < low for value in values), len(values))


def _shows_all(series: Iterable[Series], x: Axis, low: float, high: float) -> bool:
    """Whether nothing is hidden (the usual case)."""
    for each in series:
        minimum, maximum = each.curve_in(x.low, x.high).extremes(x.low, x.high)
        if minimum < low or maximum > high:
            return False
        if any(value < low or value > high for _, value in each.within(x.low, x.high)):
            return False
    return True


def describe_hidden(series: Sequence[Series], x: Axis, y: Axis, *, clipped: bool) -> list[str]:
    """Notes on the number of hidden values, the longest first; empty if there are none.

    Args:
        series: The series.
        x: Range of steps.
        y: The value axis.
        clipped: Whether outliers are hidden; else values without a logarithm.
    """
    tolerance = EDGE * (y.high - y.low)
    low = min(y.low, max(y.low - tolerance, y.low * (1 - EDGE)))  # stays positive on a logarithmic axis
    if _shows_all(series, x, low, y.high + tolerance):
        return []
    ends = (x.low, x.high, low, y.high + tolerance)
    steps = sum((hidden_steps(one, *ends) for one in series), Hidden())
    points = sum((hidden_points(one, *ends) for one in series), Hidden())
    found = steps + points
    beyond = {
        f"above {_brief(y.high)}": found.above,
        (f"below {_brief(y.low)}" if clipped else "at or below 0"): found.below,
    }
    sides = " or ".join(side for side, count in beyond.items() if count)
    if not sides:
        return []
    if any(one.is_resampled for one in series):
        return [f"some hidden {sides}", "some hidden"]
    counts = [(each, name) for each, name in ((steps, "step"), (points, "point")) if each.above + each.below]
    many = " and ".join(f"{_number(each)} of {each.total:,} {_several(name, each.total)}" for each, name in counts)
    few = " and ".join(f"{_number(each)} {_several(name, each.above + each.below)}" for each, name in counts)
    shortest = f"{_number(counts[0][0])} hidden"  # only the steps, if points are hidden too
    return [f"{many} hidden {sides}", f"{few} hidden {sides}", f"{few} hidden", shortest]


def _number(found: Hidden) -> str:
    return f"{found.above + found.below:,}{'' if found.exact else '+'}"


def _several(name: str, number: int) -> str:
    return name if number == 1 else f"{name}s"


def _brief(value: float) -> str:
    return labels([value])[0]
