"""The curves of many runs or trials as a band: median, quartiles, 10 to 90 percent."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart.plot import PlotSeries

QUANTILES = (10.0, 25.0, 50.0, 75.0, 90.0)
"""Percentiles of the band, its quartiles and its median."""

LEAST_RUNS = 3
"""Fewest curves with values for which a band is drawn."""

_POINTS = 200


class BandCurve(Protocol):
    """The course of a value."""

    @property
    def epochs(self) -> Floats:
        """Rising positions, shape ``[points]``."""

    @property
    def values(self) -> Floats:
        """Values, of the same shape."""


def band(curves: Sequence[BandCurve]) -> tuple[Floats, Floats]:
    """The percentiles of curves, whose points are joined by lines; beyond its ends, a curve has no value.

    Args:
        curves: Their positions have one unit.

    Returns:
        Positions, shape ``[points]``, and :data:`QUANTILES`, shape ``[5, points]``, as far as :data:`LEAST_RUNS` have
        values.
    """
    known = [each for each in curves if len(each.values)]
    if len(known) < LEAST_RUNS:
        return np.empty(0), np.empty((len(QUANTILES), 0))
    first = sorted(each.epochs[0] for each in known)[LEAST_RUNS - 1]
    last = max(first, sorted(each.epochs[-1] for each in known)[-LEAST_RUNS])  # one run may be far longer than others
    at = np.linspace(first, last, _POINTS)
    values = np.array([np.interp(at, each.epochs, each.values, left=np.nan, right=np.nan) for each in known])
    enough = (~np.isnan(values)).sum(axis=0) >= LEAST_RUNS
    return at[enough], np.nanpercentile(values[:, enough], QUANTILES, axis=0)


def band_series(curves: Sequence[BandCurve]) -> list[PlotSeries]:
    """The parts of a plot that show a band; none where too few curves have values."""
    at, levels = band(curves)
    if not len(at):
        return []
    return [
        PlotSeries(at, levels[[0, 4]], "band", name="10-90%"),
        PlotSeries(at, levels[[1, 3]], "band", name="25-75%", covers=True),
        PlotSeries(at, levels[2], style="axis", name="median", covers=True),
    ]
