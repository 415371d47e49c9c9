"""Marks at the edges of a plot where a curve is beyond them: there it has values that are not drawn."""

import numpy as np
import numpy.typing as npt

from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.raster import EDGE, Fractions

ABOVE, BELOW = "▲", "▼"
"""How it is marked on which side of the plot a curve is."""


def mark_edges(plot: Frame, low: Fractions, high: Fractions, style: str) -> None:
    """Mark the columns of cells in which a curve is beyond the plot.

    Args:
        plot: Drawn on.
        low: The lowest value in each column of dots, as a fraction of the height, two to a cell; NaN for none.
        high: The highest value, likewise.
        style: Of the curve.
    """
    _mark(plot, 0, _cells(high > 1 + EDGE), ABOVE, style)
    _mark(plot, -1, _cells(low < -EDGE), BELOW, style)


def _cells(dots: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return dots[::2] | dots[1::2]


def _mark(plot: Frame, row: int, cells: npt.NDArray[np.bool_], mark: str, style: str) -> None:
    plot.characters[row, cells] = ord(mark)
    plot.styles[row, cells] = STYLE_ID[style]
