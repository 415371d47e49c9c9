"""Lines drawn with braille: a character holds two by four dots.

Values come as fractions of the plot's height, 0 at the bottom and 1 at the top, two to a character's width; NaN is a
gap.
"""

import numpy as np
import numpy.typing as npt

Fractions = npt.NDArray[np.float64]
Patterns = npt.NDArray[np.uint8]

BLANK = 0x2800
"""The braille character without dots; a pattern is added to it (Unicode, block "Braille Patterns")."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def pack(dots: npt.NDArray[np.bool_]) -> Patterns:
    """Pack dots into braille patterns.

    Args:
        dots: Of shape ``[4 * rows, 2 * columns]``, the first row on top.

    Returns:
        Of shape ``[rows, columns]``.
    """
    rows, columns = dots.shape[0] // 4, dots.shape[1] // 2
    cells = dots.reshape(rows, 4, columns, 2).view(np.uint8)
    patterns: Patterns = np.zeros((rows, columns), np.uint8)
    for y, pair in enumerate(_DOTS):
        for x, weight in enumerate(pair):
            patterns |= cells[:, y, :, x] * np.uint8(weight)
    return patterns


def trace(low: Fractions, high: Fractions, rows: int) -> Patterns:
    """Draw what lies between two lines; with both the same, that line.

    Neighbours that do not touch are joined half way each, so that a line has no holes but its gaps. What lies
    outside the plot is drawn at its edge.

    Args:
        low: Lower line, of shape ``[2 * columns]``.
        high: Upper line, likewise.
        rows: Height in characters.

    Returns:
        Braille patterns of shape ``[rows, columns]``.
    """
    there = ~np.isnan(low)
    top = dot_rows(high, rows)
    bottom = dot_rows(low, rows)
    joined = there[:-1] & there[1:]
    falls = joined & (bottom[:-1] < top[1:])
    rises = joined & (top[:-1] > bottom[1:])
    down = (bottom[:-1] + top[1:]) // 2
    up = (top[:-1] + bottom[1:]) // 2
    upper, lower = top.copy(), bottom.copy()
    lower[:-1][falls] = down[falls]
    upper[1:][falls] = down[falls] + 1
    upper[:-1][rises] = np.minimum(upper[:-1], up + 1)[rises]
    lower[1:][rises] = np.maximum(lower[1:], up)[rises]
    y = np.arange(4 * rows, dtype=np.int16)[:, np.newaxis]
    return pack((y >= upper) & (y <= lower) & there)


def dot_rows(fractions: Fractions, rows: int) -> npt.NDArray[np.int16]:
    """Rows of dots, counted from the top, that fractions of the height fall in; any row for NaN."""
    last = 4 * rows - 1
    inside = np.fmax(np.fmin((1 - fractions) * last, last), 0)  # these, unlike clip, put a number for NaN
    dots: npt.NDArray[np.int16] = np.rint(inside).astype(np.int16)
    return dots
