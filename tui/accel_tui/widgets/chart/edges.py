"""Marks the edges of a plot where a curve leaves it."""

import numpy as np
import numpy.typing as npt

from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.raster import EDGE, Fractions

ABOVE, BELOW = "▲", "▼"
"""Signs by the edge of the plot."""


def mark_edges(plot: Frame, low: Fractions, high: Fractions, style: str) -> None:
    """Mark the cell columns in which a curve is beyond the plot.

    Args:
        plot: Drawn on.
        low: Minimum of each dot column as a fraction of the height, two per cell; NaN for none.
        high: Maximum, likewise.
        style: The curve's style.
    """
    _mark(plot, 0, _cells(high > 1 + EDGE), ABOVE, style)
    _mark(plot, -1, _cells(low < -EDGE), BELOW, style)


def _cells(dots: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return dots[::2] | dots[1::2]


def _mark(plot: Frame, row: int, cells: npt.NDArray[np.bool_], mark: str, style: str) -> None:
    plot.characters[row, cells] = ord(mark)
    plot.styles[row, cells] = STYLE_ID[style]
