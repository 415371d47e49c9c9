"""Rasterizes lines to braille characters of two by four dots.

Values are fractions of the plot's height, 0 at the bottom and 1 at the top, two per character; NaN is a gap.
"""

import numpy as np
import numpy.typing as npt

Fractions = npt.NDArray[np.float64]
Patterns = npt.NDArray[np.uint8]

BLANK = 0x2800
"""The empty braille pattern, to which dots are added (Unicode block "Braille Patterns")."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))

EDGE = 1e-6
"""Tolerance at the edges of the plot, as a share of its height, since the ends of an axis are rounded."""

_FAR = 16_000  # dots; twice as many fit an int16

_BARS = np.array(
    [[sum(dots[side] for dots in _DOTS[first:end]) for first in range(5) for end in range(5)] for side in range(2)],
    np.uint8,
)
"""Patterns of a bar in either half of a character, by its first dot row and the one after its last."""


def pack(upper: npt.NDArray[np.int16], lower: npt.NDArray[np.int16], rows: int) -> Patterns:
    """Draw a vertical bar in each dot column.

    Args:
        upper: First dot row of each bar, counted from the top, shape ``[..., 2 * columns]``.
        lower: Last dot row of each bar, likewise; one above ``upper`` for no bar.
        rows: Height in characters.

    Returns:
        Braille patterns, shape ``[..., rows, columns]``.
    """
    top = 4 * np.arange(rows, dtype=np.int16)[:, np.newaxis]
    # First dot row of the bar within each character, and the one after its last.
    first = np.minimum(np.maximum(upper[..., np.newaxis, :] - top, 0), 4)
    end = np.minimum(np.maximum(lower[..., np.newaxis, :] - (top - 1), 0), 4)
    bars = 5 * first + end
    patterns: Patterns = _BARS[0].take(bars[..., ::2]) | _BARS[1].take(bars[..., 1::2])
    return patterns


def trace(low: Fractions, high: Fractions, rows: int) -> Patterns:
    """Draw the band between two lines; a line if both are the same.

    Neighbours that do not touch are joined half way each, so that a line has holes only at gaps. What is outside the
    plot is clipped.

    Args:
        low: Lower line, shape ``[..., 2 * columns]``; several bands at once cost hardly more than one.
        high: Upper line, likewise.
        rows: Height in characters.

    Returns:
        Braille patterns, shape ``[..., rows, columns]``.
    """
    gaps = np.isnan(low)
    top = dot_rows(high, rows)
    bottom = top.copy() if low is high else dot_rows(low, rows)
    if holed := bool(gaps.any()):
        top[gaps], bottom[gaps] = 0, 4 * rows  # bars are clipped to the plot
    upper, lower = top.copy(), bottom.copy()
    down = (bottom[..., :-1] + top[..., 1:]) >> 1  # no further than the bar, where neighbours touch
    np.maximum(lower[..., :-1], down, out=lower[..., :-1])
    np.minimum(upper[..., 1:], down + 1, out=upper[..., 1:])
    up = (top[..., :-1] + bottom[..., 1:]) >> 1
    np.minimum(upper[..., :-1], up + 1, out=upper[..., :-1])
    np.maximum(lower[..., 1:], up, out=lower[..., 1:])
    if holed:
        upper[gaps], lower[gaps] = 0, -1
    return pack(upper, lower, rows)


def dot_rows(fractions: Fractions, rows: int) -> npt.NDArray[np.int16]:
    """Dot rows of fractions of the height, counted from the top; undefined for NaN.

    The value of a row's label, also if rounded, is in the first dot row of that row. 0, whose label is in the row below
    the plot, is in the plot's last dot row. Values outside the plot have rows outside of it.
    """
    known = np.where(np.isnan(fractions), 0.0, fractions)
    dots = np.rint(np.clip((1 - known) * 4 * rows, -_FAR, _FAR))
    inside = (known >= -EDGE) & (known <= 1 + EDGE)
    beyond = np.where(known > 1, np.minimum(dots, -1), np.maximum(dots, 4 * rows))
    placed: npt.NDArray[np.int16] = np.where(inside, np.clip(dots, 0, 4 * rows - 1), beyond).astype(np.int16)
    return placed
