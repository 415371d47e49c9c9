"""Rasterizes points, and lines in any direction, to braille characters of two by four dots."""

import numpy as np
import numpy.typing as npt

from accel_tui.widgets.chart import raster

_FAR = 4.0  # plots; lines to points farther out are cut there

_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.uint8)


def scatter(across: raster.Fractions, up: raster.Fractions, columns: int, rows: int) -> raster.Patterns:
    """Draw points.

    Args:
        across: Fractions of the plot's width, from the left, shape ``[points]``. Points outside, or NaN, are left out.
        up: Fractions of its height, from the bottom.
        columns: Width in characters.
        rows: Height in characters.

    Returns:
        Braille patterns, shape ``[rows, columns]``.
    """
    inside = (np.abs(across - 0.5) <= 0.5 + raster.EDGE) & (np.abs(up - 0.5) <= 0.5 + raster.EDGE)
    x = np.clip(np.floor(across[inside] * 2 * columns), 0, 2 * columns - 1).astype(np.int64)
    y = raster.dot_rows(up[inside], rows).astype(np.int64)
    patterns = np.zeros((rows, columns), np.uint8)
    np.bitwise_or.at(patterns, (y // 4, x // 2), _BITS[y % 4, x % 2])
    return patterns


def polyline(across: raster.Fractions, up: raster.Fractions, columns: int, rows: int) -> raster.Patterns:
    """Draw a line through points in their order, with gaps where one is NaN; arguments as in :func:`scatter`."""
    if not across.size:
        return np.zeros((rows, columns), np.uint8)
    points = np.clip(np.stack([across, up]), -_FAR, _FAR + 1)
    dots = points * np.array([[2 * columns], [4 * rows]])
    with np.errstate(invalid="ignore"):
        lengths = np.ceil(np.abs(np.diff(dots)).max(axis=0))
    joined = np.nonzero(np.isfinite(lengths))[0]
    counts = lengths[joined].astype(np.int64) + 1  # points of each piece, its end excluded
    starts = np.repeat(joined, counts)
    offsets: npt.NDArray[np.int64] = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    parts = offsets / np.repeat(counts, counts)
    pieces = points[:, starts] + parts * (points[:, starts + 1] - points[:, starts])
    across, up = np.concatenate([pieces, points], axis=1)
    return scatter(across, up, columns, rows)
