"""Rasterizes lines to braille characters of two by four dots.

Values are fractions of the plot's height, two per character: 1 is at the label of the first row and 0 at the label of
the last one, which is the row of the axis. NaN is a gap.
"""

import numpy as np
import numpy.typing as npt

Fractions = npt.NDArray[np.float64]
Patterns = npt.NDArray[np.uint8]

BLANK = 0x2800
"""The empty braille pattern, to which dots are added (Unicode block "Braille Patterns")."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))

DOTS = 4
"""Dot rows of a character."""

_MIDDLE = 1  # dot row of a character at the height of its label and its gridline

EDGE = 1e-6
"""Tolerance at the edges of the plot, as a share of its height, since the ends of an axis are rounded."""

_FAR = 16_000  # dots; twice as many fit an int16

_BARS = np.array(
    [[sum(dots[side] for dots in _DOTS[first:end]) for first in range(5) for end in range(5)] for side in range(2)],
    np.uint8,
)
"""Patterns of a bar in either half of a character, by its first dot row and the one after its last."""


def fill_columns(upper: npt.NDArray[np.int16], lower: npt.NDArray[np.int16], rows: int) -> Patterns:
    """Draw a vertical bar in each dot column.

    Args:
        upper: First dot row of each bar, counted from the top, shape ``[..., 2 * columns]``.
        lower: Last dot row of each bar, of the same shape; one above ``upper`` for no bar.
        rows: Height in characters.

    Returns:
        Braille patterns, shape ``[..., rows, columns]``.
    """
    top = 4 * np.arange(rows, dtype=np.int16)[:, np.newaxis]
    # First dot row of the bar within each character, and the one after its last.
    first = np.minimum(np.maximum(upper[..., np.newaxis, :] - top, 0), 4)
    end = np.minimum(np.maximum(lower[..., np.newaxis, :] - (top - 1), 0), 4)
    bars = 5 * first + end
    return _BARS[0].take(bars[..., ::2]) | _BARS[1].take(bars[..., 1::2])


def trace(low: Fractions, high: Fractions, rows: int) -> Patterns:
    """Draw the band between two lines; a line if both are the same.

    Neighbours that do not touch are joined half way each, so that a line has holes only at gaps. What is outside the
    plot is clipped.

    Args:
        low: Lower line, shape ``[..., 2 * columns]``; several bands at once cost hardly more than one.
        high: Upper line, of the same shape.
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
    return fill_columns(upper, lower, rows)


def thick(patterns: Patterns) -> Patterns:
    """Patterns with another dot below each, so that the middle of a line at a label is the middle of its row."""
    inside = (patterns & 0x1B) << 1 | (patterns & 0x04) << 4 | (patterns & 0x20) << 2
    carried = np.zeros_like(patterns)
    carried[1:] = patterns[:-1]
    return (patterns | inside | (carried & 0x40) >> 6 | (carried & 0x80) >> 4).astype(np.uint8)


def dot_rows(fractions: Fractions, rows: int) -> npt.NDArray[np.int16]:
    """Dot rows of fractions of the height, counted from the top; undefined for NaN.

    The value of a row's label is in the dot row beside the middle of that row; only a plot of a single row has its ends
    at the first and the last dot. Values outside the plot have rows outside of it.
    """
    first, last = (_MIDDLE, DOTS * (rows - 1) + _MIDDLE) if rows > 1 else (0, DOTS - 1)
    known = np.where(np.isnan(fractions), 0.0, fractions)
    dots = np.rint(np.clip(first + (1 - known) * (last - first), -_FAR, _FAR))
    inside = (known >= -EDGE) & (known <= 1 + EDGE)
    beyond = np.where(known > 1, np.minimum(dots, -1), np.maximum(dots, DOTS * rows))
    return np.where(inside, np.clip(dots, first, last), beyond).astype(np.int16)
