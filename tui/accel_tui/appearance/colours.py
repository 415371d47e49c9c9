"""The colours of all heat maps, with a fallback of shading characters.

Blue for correct and orange for incorrect can be distinguished with colour blindness. They are mixed in OKLab (Ottosson,
"A perceptual color space for image processing", 2020), so that equal steps look equal.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import lru_cache

from accel_tui.settings.user_settings import Settings

Colour = tuple[int, int, int]
"""Red, green and blue, from 0 to 255."""

SHADES = " .:-=+*#%@"
"""Shading characters from 0 to 1."""

CORRECT, INCORRECT = "right", "wrong"

_ENDS: dict[tuple[str, bool], Colour] = {
    (CORRECT, True): (74, 163, 240),
    (INCORRECT, True): (250, 150, 60),
    (CORRECT, False): (20, 95, 165),
    (INCORRECT, False): (185, 80, 10),
}
"""The colour of share 1, by hue and by whether the theme is dark."""

_MIN_DISTANCE = 0.2
"""Minimum distance from the background, so that the smallest share is visible."""

_Vector = Sequence[float]

_TO_CONES = ((0.4122, 0.5363, 0.0515), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.63))
_TO_LAB = ((0.2105, 0.7936, -0.0041), (1.978, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))


@lru_cache(4096)
def scale_colour(share: float, hue: str, background: Colour, *, dark: bool) -> Colour:
    """The colour of a share from 0 to 1, as all heat maps have it; the background's for 0."""
    if share <= 0:
        return background
    ends = [_lab(colour) for colour in (background, _ENDS[hue, dark])]
    part = _MIN_DISTANCE + (1 - _MIN_DISTANCE) * min(share, 1.0) ** 0.5
    mixed = [low + part * (high - low) for low, high in zip(*ends, strict=True)]
    linear = _solved(_TO_CONES, [cone**3 for cone in _solved(_TO_LAB, mixed)])
    red, green, blue = (round(255 * _gamma_encoded(min(max(each, 0.0), 1.0))) for each in linear)
    return red, green, blue


def contrasting_text_colour(background: Colour) -> Colour:
    """Black or white, whichever has the higher contrast with a colour."""
    luminance = _dot((0.2126, 0.7152, 0.0722), _linear(background))
    # Equal contrast with both, by the Web Content Accessibility Guidelines 2.1.
    return (0, 0, 0) if luminance > (1.05 * 0.05) ** 0.5 - 0.05 else (255, 255, 255)


def shading_character(share: float) -> str:
    """Shading character of a share from 0 to 1; a blank only for 0."""
    if share <= 0:
        return SHADES[0]
    return SHADES[max(1, min(len(SHADES) - 1, round(share**0.5 * (len(SHADES) - 1))))]


def _lab(colour: Colour) -> list[float]:
    linear = _linear(colour)
    cones = [_dot(row, linear) ** (1 / 3) for row in _TO_CONES]
    return [_dot(row, cones) for row in _TO_LAB]


def _linear(colour: Colour) -> list[float]:
    encoded = (part / 255 for part in colour)
    return [((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in encoded]


def _gamma_encoded(linear: float) -> float:
    return 1.055 * linear ** (1 / 2.4) - 0.055 if linear > 0.0031308 else 12.92 * linear


def _dot(one: _Vector, other: _Vector) -> float:
    return sum(left * right for left, right in zip(one, other, strict=True))


def _solved(matrix: Sequence[_Vector], right: _Vector) -> list[float]:
    """The solution of three linear equations, by Cramer's rule; themes need it before NumPy is imported."""
    columns = [[row[at] for row in matrix] for at in range(3)]
    whole = _determinant(columns)
    return [
        _determinant([right if at == place else column for at, column in enumerate(columns)]) / whole
        for place in range(3)
    ]


def _determinant(columns: Sequence[_Vector]) -> float:
    (a, b, c), (d, e, f), (g, h, i) = columns
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


TRUE_COLOUR = 1 << 24
"""Number of colours of a terminal with 24-bit colours."""

ANSI_16 = 16
"""Number of colours of a terminal that defines its 16 colours itself."""

OWN_THEME = "accel-ansi"
"""The theme that uses only the terminal's own colours."""

_SYSTEMS = {"16": "standard", "256": "256", "all": "truecolor"}  # Textual's names


def terminal_colour_count(environment: Mapping[str, str]) -> int:
    """Number of colours that the environment declares."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return TRUE_COLOUR
    kind = environment.get("TERM", "")
    return 256 if kind.endswith(("-256color", "-256colors", "-direct")) or kind == "xterm-kitty" else ANSI_16


def configure_textual(settings: Settings, environment: MutableMapping[str, str]) -> Settings:
    """Configure Textual, which reads the environment on import, by the settings.

    The program's settings take precedence over NO_COLOR, which is about programs in general.

    Returns:
        The settings, with the theme :data:`OWN_THEME` if none was set and the terminal shows at most 16 colours.
    """
    environment["TEXTUAL_FPS"] = str(settings.frames)
    if not environment.get("NO_COLOR"):
        environment.pop("NO_COLOR", None)  # an empty value would count as set
    if settings.colours == "none":
        environment["NO_COLOR"] = "1"
    elif settings.colours != "auto":
        environment.pop("NO_COLOR", None)
        environment["TEXTUAL_COLOR_SYSTEM"] = _SYSTEMS[settings.colours]
    if settings.theme != "auto":
        return settings
    few = settings.colours == "16" or (settings.colours == "auto" and terminal_colour_count(environment) == ANSI_16)
    return replace(settings, theme=OWN_THEME) if few or "NO_COLOR" in environment else settings
