"""How the styles of a chart's cells look in a theme.

They are computed from the variables of the theme when they are first shown. Component classes would do the same, but
Textual resolves all of them for each chart whenever a class of it or of a widget around it changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style
from textual.color import Color
from textual.widget import Widget

from accel_tui.widgets.chart.cell_frame import COLOURS, style_and_tint


@dataclass(frozen=True, slots=True)
class CellLook:
    """How cells of a style look."""

    colour: str
    """A variable of the theme, or a colour that Textual knows."""
    share: float = 1.0
    """How much of it covers the background, from 0 to 1."""
    text_style: str = ""
    """Such as ``bold``."""


TINTS = {"area": 0.13, "range": 0.26}
"""How much of a colour the area below a curve has, and the range of its values."""

BANDS = {"band": 0.45, **TINTS}
"""How much of a colour the dots of a band have, and parts of cells that are not tinted as a whole."""

LOOKS: Mapping[str, CellLook] = {
    "title": CellLook("text", text_style="bold"),
    "note": CellLook("text-muted"),
    "label": CellLook("text-muted"),
    "axis": CellLook("foreground", 0.30),
    "grid": CellLook("foreground", 0.15),
    **{colour: CellLook(colour) for colour in COLOURS},
    **{f"{colour}-{kind}": CellLook(colour, share) for colour in COLOURS for kind, share in BANDS.items()},
}
"""The styles of charts; see :data:`accel_tui.widgets.chart.cell_frame.STYLES`."""

ANSI_LOOKS: Mapping[str, CellLook] = {
    **{name: CellLook("text-muted", text_style="dim") for name in ("note", "label")},
    **{name: CellLook("ansi_bright_black") for name in ("axis", "grid")},
    **{f"{colour}-band": CellLook(colour, text_style="dim") for colour in COLOURS},
}
"""The looks of cells that differ in the terminal's colours (an ANSI theme)."""


def look_of(widget: Widget, name: str, looks: Mapping[str, CellLook] = LOOKS) -> Style:
    """The style of cells of a widget in the present theme.

    Args:
        widget: Where the cells are.
        name: The name of a style in ``looks``, with a tint or without; see
            :data:`accel_tui.widgets.chart.cell_frame.CELL_STYLES`.
        looks: The looks by their names.
    """
    style, tint = style_and_tint(name)
    look = (ANSI_LOOKS.get(style) if widget.app.current_theme.ansi else None) or looks[style]
    variables, around = widget.app.theme_variables, widget.background_colors[1]
    behind, _, kind = tint.rpartition("-")
    background = _over(around, variables[behind], TINTS[kind]) if tint else around
    colour = _over(around, variables.get(look.colour, look.colour), look.share)
    found = Style.from_color(colour.rich_color, background.rich_color)
    return found + Style.parse(look.text_style) if look.text_style else found


@lru_cache(maxsize=1024)
def _over(background: Color, colour: str, share: float) -> Color:
    """A share of a colour over another one.

    Args:
        background: The other one.
        colour: As themes write it: a colour, or ``auto``, which is black or white, and then perhaps a percentage.
        share: From 0 to 1.
    """
    name, _, percent = colour.partition(" ")
    share *= float(percent.removesuffix("%") or 100) / 100
    if name == "auto":
        return background + background.get_contrast_text(share)
    found = Color.parse(name)
    return background + (found if found.ansi is not None else found.multiply_alpha(share))
