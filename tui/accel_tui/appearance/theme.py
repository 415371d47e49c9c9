"""Colour themes: one accent, hues for states and for what is measured.

The hues of series can be distinguished with colour blindness, as the tests compute.
"""

from textual.color import Color
from textual.theme import Theme

from accel_tui.appearance.colours import CORRECT, scale_colour


def _theme(
    name: str,
    *,
    dark: bool,
    hues: tuple[str, str, str, str, str],
    surfaces: tuple[str, str, str],
    muted: str,
    disabled: str,
    border: str,
    cursor: str,
    cursor_text: str,
    blurred: str,
    bar_hover: str,
    **variables: str,
) -> Theme:
    """A theme whose variables follow from a few colours.

    Textual's own variables are relative to a background that inline styles do not know, and come out white.

    Args:
        name: Its name.
        dark: Whether its background is dark.
        hues: Primary, secondary, success, warning and error.
        surfaces: Foreground, background and surface.
        muted: Quiet text.
        disabled: Text of what cannot be used.
        border: Borders and scroll bars.
        cursor: Background of the cursor and of selected text.
        cursor_text: Text on the cursor.
        blurred: Background of the cursor without the focus, and under the mouse.
        bar_hover: A scroll bar under the mouse.
        variables: Exceptions, with underscores in place of hyphens.
    """
    primary, secondary, success, warning, error = hues
    foreground, background, surface = surfaces
    derived = {
        "text-muted": muted,
        "text-disabled": disabled,
        "border": border,
        "border-blurred": border,
        "block-cursor-background": cursor,
        "block-cursor-foreground": cursor_text,
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": blurred,
        "block-hover-background": blurred,
        "footer-background": background,
        "footer-key-foreground": primary,
        "footer-description-foreground": muted,
        "input-cursor-background": primary,
        "input-selection-background": cursor,
        "scrollbar": border,
        "scrollbar-hover": bar_hover,
        "scrollbar-background": background,
        "scrollbar-background-hover": background,
        "scrollbar-background-active": background,
        "loss": secondary,
        "metric": success,
        "speed": primary,
    }
    return Theme(
        name=name,
        dark=dark,
        primary=primary,
        secondary=secondary,
        accent=primary,
        success=success,
        warning=warning,
        error=error,
        foreground=foreground,
        background=background,
        surface=surface,
        panel=surface,
        variables=derived | {key.replace("_", "-"): value for key, value in variables.items()},
    )


DARK = _theme(
    "accel-dark",
    dark=True,
    hues=("#45bff5", "#ff9c5c", "#45bc8f", "#f3d06c", "#f25e63"),
    surfaces=("#d7deea", "#0b0f17", "#141c2b"),
    muted="#8e9bb3",
    disabled="#6b7892",
    border="#2a3550",
    cursor="#1f3a5c",
    cursor_text="#f2f6fc",
    blurred="#1a2233",
    bar_hover="#3d4c70",
    loss_light="#ffd0ad",
    metric_light="#b8f0cc",
    rate="#b48cf2",
    gradient="#f072b6",
)

LIGHT = _theme(
    "accel-light",
    dark=False,
    hues=("#306098", "#b4540f", "#03814c", "#824c00", "#942b4e"),
    surfaces=("#1c2430", "#fbfaf7", "#f3f1ea"),
    muted="#56606f",
    disabled="#7b8494",
    border="#cfc9ba",
    cursor="#cfe3f5",
    cursor_text="#10202e",
    blurred="#e7e3d8",
    bar_hover="#b5ae9b",
    loss_light="#7a3606",
    metric_light="#0e4d29",
    rate="#6d3fc0",
    gradient="#b0246f",
)

CONTRAST = _theme(
    "accel-contrast",
    dark=True,
    hues=("#a4d7e5", "#fead3b", "#55f48d", "#fff03c", "#ff7d8a"),
    surfaces=("#ffffff", "#000000", "#000000"),
    muted="#e0e0e0",
    disabled="#b8b8b8",
    border="#ffffff",
    cursor="#fff03c",
    cursor_text="#000000",
    blurred="#3c3c3c",
    bar_hover="#fff03c",
    loss_light="#ffe8c4",
    metric_light="#d8ffe6",
    rate="#d9b8ff",
    gradient="#ff9ed2",
    border_blurred="#b8b8b8",
    block_cursor_text_style="bold",
    block_cursor_blurred_foreground="#ffffff",
    footer_key_foreground="#fff03c",
    footer_description_foreground="#ffffff",
    input_cursor_background="#fff03c",
    input_cursor_foreground="#000000",
    input_selection_background="#004b8d",
)

ANSI = Theme(
    name="accel-ansi",
    ansi=True,
    dark=True,
    primary="ansi_cyan",
    secondary="ansi_magenta",
    accent="ansi_cyan",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "loss": "ansi_cyan",
        "loss-light": "ansi_magenta",
        "metric": "ansi_cyan",
        "metric-light": "ansi_magenta",
        "speed": "ansi_green",
        "rate": "ansi_cyan",
        "gradient": "ansi_cyan",
        "text-muted": "ansi_bright_black",
        "text-disabled": "ansi_bright_black",
        "border": "ansi_bright_black",
        "border-blurred": "ansi_bright_black",
        "block-cursor-background": "ansi_cyan",
        "block-cursor-foreground": "ansi_black",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "ansi_default",
        "block-cursor-blurred-foreground": "ansi_default",
        "block-hover-background": "ansi_default",
        "footer-background": "ansi_default",
        "footer-key-foreground": "ansi_cyan",
        "footer-description-foreground": "ansi_default",
        "input-cursor-background": "ansi_cyan",
        "input-cursor-foreground": "ansi_black",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_default",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "scrollbar-corner-color": "ansi_default",
    },
)
"""A theme of the terminal's own sixteen colours."""

THEMES = (DARK, LIGHT, CONTRAST, ANSI)

MEASURES = {
    "loss": "secondary",
    "loss-light": "warning",
    "metric": "success",
    "metric-light": "warning",
    "speed": "primary",
    "rate": "secondary",
    "gradient": "error",
}
"""The colours of what is measured in themes that have none for it, by the names of their variables."""


LOADS = tuple(f"load-{level}" for level in range(5))
"""The colours of loads, from none to full."""

AREAS = tuple(f"{load}-area" for load in LOADS)
"""Their colours below the line of a history, nearer to the background."""


HEATS = tuple(f"heat-{level}" for level in range(5))
"""The colours of the levels of a heat map, from the worst to the best."""


def measure_colours(theme: Theme) -> dict[str, str]:
    """The colours of what is measured, of loads and what is below them, and of levels, for a theme of Textual."""
    measures = {name: getattr(theme, colour) or theme.primary for name, colour in MEASURES.items()}
    low, half, full = (str(colour or theme.primary) for colour in (theme.success, theme.warning, theme.error))
    if low.startswith("ansi"):
        ansi = ("ansi_bright_black", "ansi_blue", "ansi_cyan", "ansi_green", "ansi_yellow")
        levels = zip((*LOADS, *HEATS), (low, low, half, half, full, *ansi), strict=True)
        return measures | dict(levels) | dict.fromkeys(AREAS, "ansi_bright_black")
    ends = [Color.parse(colour) for colour in (low, half, full)]
    shades = (ends[0], ends[0].blend(ends[1], 0.5), ends[1], ends[1].blend(ends[2], 0.5), ends[2])
    ground = Color.parse(theme.background or ("#121212" if theme.dark else "#efefef"))  # Textual's own
    areas = [shade.blend(ground, _TO_GROUND) for shade in shades]
    shares = [((level + 0.5) / len(HEATS)) ** 2 for level in range(len(HEATS))]  # equal steps on the scale
    heats = [Color(*scale_colour(share, CORRECT, ground.rgb, dark=theme.dark)) for share in shares]
    named = zip((*LOADS, *AREAS, *HEATS), (*shades, *areas, *heats), strict=True)
    return measures | {name: shade.hex for name, shade in named}


_TO_GROUND = 0.6
"""Share of the background in the colour of an area."""


def counterpart(theme: Theme) -> Theme:
    """The counterpart of a theme: light for a dark one, dark for a light one."""
    return LIGHT if theme.dark else DARK
