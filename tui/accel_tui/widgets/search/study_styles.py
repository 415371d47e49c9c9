"""Styles of the cells of a search's views, and functions that draw with them."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from accel_tui.study_state.state import Floats
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.cell_frame import CELL_STYLES, STYLES, Frame
from accel_tui.widgets.chart.cell_looks import LOOKS, CellLook

LEVELS = 5
"""Levels of an objective, from the worst fifth of the trials to the best."""

STUDY_STYLES = (*CELL_STYLES, *(f"level-{level}" for level in range(LEVELS)), "accent")
"""Styles of cells; a style's id is its index here."""

STUDY_STYLE_ID = {name: number for number, name in enumerate(STUDY_STYLES)}
"""Index of each style."""

LEVEL_SIGNS = "·░▒▓█"
"""A sign per level, for terminals without colours."""

STUDY_LOOKS: Mapping[str, CellLook] = {
    **LOOKS,
    **{f"level-{level}": CellLook(f"heat-{level}") for level in range(LEVELS)},
    "accent": CellLook("accent", text_style="bold"),
}
"""How cells of these styles look."""


def levels_of(values: Floats, *, maximize: bool) -> npt.NDArray[np.int64]:
    """The level of each value by its rank, :data:`LEVELS` - 1 for the best; -1 for NaN."""
    known = np.flatnonzero(np.isfinite(values))
    found = np.full(len(values), -1)
    order = known[np.argsort(values[known] if maximize else -values[known], kind="stable")]
    found[order] = np.arange(len(order)) * LEVELS // max(len(order), 1)
    return found


def paint(area: Frame, patterns: raster.Patterns, style: str) -> None:
    """Add dots of a style to those that are there, and leave the tint behind them."""
    mask = patterns > 0
    has_dots = (area.characters >= raster.BLANK) & (area.characters <= raster.BLANK + 0xFF)
    below = np.where(has_dots, area.characters - np.uint32(raster.BLANK), 0)
    area.characters[mask] = (below | patterns)[mask] + np.uint32(raster.BLANK)
    number = STUDY_STYLE_ID[style]
    below_style = area.styles[mask]
    tints = np.where(below_style < len(CELL_STYLES), below_style - below_style % len(STYLES), 0)
    area.styles[mask] = number + (tints if number < len(STYLES) else 0)


def write_cells(frame: Frame, x: int, y: int, text: str, style: str) -> None:
    """Write text into a row, clipped to the frame; as :meth:`Frame.write`, with any style of a study."""
    rows, columns = frame.characters.shape
    if x < 0:
        text, x = text[-x:], 0
    text = text[: max(0, columns - x)]
    if text and 0 <= y < rows:
        frame.characters[y, x : x + len(text)] = np.frombuffer(text.encode("utf-32-le"), "<u4")
        frame.styles[y, x : x + len(text)] = STUDY_STYLE_ID[style]


def legend(frame: Frame, x: int, y: int) -> None:
    """Write the levels, from worst to best."""
    write_cells(frame, x, y, "worst ", "note")
    for level in range(LEVELS):
        write_cells(frame, x + 6 + 2 * level, y, "██" if level else "░░", f"level-{level}")
    write_cells(frame, x + 7 + 2 * LEVELS, y, "best", "note")


LEGEND_WIDTH = 11 + 2 * LEVELS
"""Width of :func:`legend`."""
