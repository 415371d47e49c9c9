"""Styles of the cells of a search's views, and how many trials are painted at once."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from accel_tui.study_state.state import Floats
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.cell_frame import STYLES, Frame
from accel_tui.widgets.chart.cell_looks import ANSI_LOOKS, LOOKS, CellLook

LEVELS = 5
"""Levels of an objective, from the worst fifth of the trials to the best."""

_ON_BAND = ("axis", "grid", "primary", "primary-band", "secondary", "success")  # what is drawn over a band

STUDY_STYLES = (
    *STYLES,
    *(f"level-{level}" for level in range(LEVELS)),
    "accent",
    "band",
    *(f"{style}-on-band" for style in _ON_BAND),
)
"""Styles of cells; a style's id is its index here."""

STUDY_STYLE_ID = {name: number for number, name in enumerate(STUDY_STYLES)}
"""Index of each style."""

BAND_SIGN = "░"
"""The character of a band, in the colour of the tint behind it: it is seen only where there are no tints."""

LEVEL_SIGNS = "·░▒▓█"
"""A sign per level, for terminals without colours."""

_ON_BAND_COLOURS = {"axis": ("foreground", 0.6), "grid": ("foreground", 0.25), "primary-band": ("primary", 0.6)}
_BAND_SHARE = 0.22

STUDY_LOOKS: Mapping[str, CellLook] = {
    **LOOKS,
    "level-0": CellLook("foreground", 0.25),
    "level-1": CellLook("primary", 0.5),
    "level-2": CellLook("primary"),
    "level-3": CellLook("success"),
    "level-4": CellLook("warning"),
    "accent": CellLook("accent", text_style="bold"),
    "band": CellLook("primary", 0.0, behind="primary", behind_share=_BAND_SHARE),
    **{
        f"{style}-on-band": CellLook(
            *_ON_BAND_COLOURS.get(style, (style, 1.0)), behind="primary", behind_share=_BAND_SHARE
        )
        for style in _ON_BAND
    },
}
"""How cells of these styles look."""

STUDY_ANSI_LOOKS: Mapping[str, CellLook] = {
    **ANSI_LOOKS,
    **{
        f"level-{level}": CellLook(f"ansi_{colour}")
        for level, colour in enumerate(("bright_black", "blue", "cyan", "green", "yellow"))
    },
    "band": CellLook("ansi_bright_black"),
    **{f"{style}-on-band": CellLook(_ON_BAND_COLOURS.get(style, (style,))[0]) for style in _ON_BAND},
}
"""How those look that are different in the colours that a terminal has by itself."""


def levels_of(values: Floats, *, maximize: bool) -> npt.NDArray[np.int64]:
    """The level of each value by its rank, :data:`LEVELS` - 1 for the best; -1 for NaN."""
    known = np.flatnonzero(np.isfinite(values))
    found = np.full(len(values), -1)
    order = known[np.argsort(values[known] if maximize else -values[known], kind="stable")]
    found[order] = np.arange(len(order)) * LEVELS // max(len(order), 1)
    return found


def paint(area: Frame, patterns: raster.Patterns, style: str) -> None:
    """Add dots of a style to those that are there."""
    mask = patterns > 0
    has_dots = (area.characters >= raster.BLANK) & (area.characters <= raster.BLANK + 0xFF)
    below = np.where(has_dots, area.characters - np.uint32(raster.BLANK), 0)
    area.characters[mask] = (below | patterns)[mask] + np.uint32(raster.BLANK)
    on_band = STUDY_STYLE_ID.get(f"{style}-on-band", STUDY_STYLE_ID[style])
    is_band = (area.styles == STUDY_STYLE_ID["band"]) | (area.styles >= STUDY_STYLE_ID[f"{_ON_BAND[0]}-on-band"])
    area.styles[mask] = np.where(is_band[mask], on_band, STUDY_STYLE_ID[style])


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
