"""Colour scales for shares, with a fallback of shading characters.

Blue for correct and orange for incorrect can be told apart with colour blindness. They are mixed in OKLab (Ottosson,
"A perceptual color space for image processing", 2020), so that equal steps look equal.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]
"""Red, green and blue, from 0 to 255."""

SHADES = " .:-=+*#%@"
"""Shading characters from 0 to 1."""

RIGHT, WRONG = "right", "wrong"

_ENDS: dict[tuple[str, bool], Colour] = {
    (RIGHT, True): (74, 163, 240),
    (WRONG, True): (250, 150, 60),
    (RIGHT, False): (20, 95, 165),
    (WRONG, False): (185, 80, 10),
}
"""The colour of share 1, by hue and by whether the theme is dark."""

_LEAST = 0.2
"""Minimum distance from the background, so that the smallest share is visible."""

_TO_CONES = np.array([[0.4122, 0.5363, 0.0515], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.63]])
_TO_LAB = np.array([[0.2105, 0.7936, -0.0041], [1.978, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])


@lru_cache(4096)
def tone(share: float, hue: str, background: Colour, *, dark: bool) -> Colour:
    """The colour of a share from 0 to 1; the background's for 0."""
    if share <= 0:
        return background
    ends = [_lab(colour) for colour in (background, _ENDS[hue, dark])]
    mixed = ends[0] + (_LEAST + (1 - _LEAST) * min(share, 1.0) ** 0.5) * (ends[1] - ends[0])
    linear = np.linalg.solve(_TO_CONES, np.linalg.solve(_TO_LAB, mixed) ** 3).clip(0, 1)
    bent = np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)
    red, green, blue = np.rint(255 * bent).astype(int).tolist()
    return red, green, blue


def ink(background: Colour) -> Colour:
    """Black or white, whichever has the higher contrast with a colour."""
    luminance = np.array([0.2126, 0.7152, 0.0722]) @ _linear(background)
    # Equal contrast with both, by the Web Content Accessibility Guidelines 2.1.
    return (0, 0, 0) if luminance > (1.05 * 0.05) ** 0.5 - 0.05 else (255, 255, 255)


def shade(share: float) -> str:
    """Shading character of a share from 0 to 1; a blank only for 0."""
    if share <= 0:
        return SHADES[0]
    return SHADES[max(1, min(len(SHADES) - 1, round(share**0.5 * (len(SHADES) - 1))))]


def _lab(colour: Colour) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = _TO_LAB @ np.cbrt(_TO_CONES @ _linear(colour))
    return found


def _linear(colour: Colour) -> npt.NDArray[np.float64]:
    bent = np.array(colour) / 255
    return np.where(bent > 0.04045, ((bent + 0.055) / 1.055) ** 2.4, bent / 12.92)
