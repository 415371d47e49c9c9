"""Downsampling of steps to buckets that keep minima and maxima, on NumPy arrays."""

import numpy as np
import numpy.typing as npt

BUCKET = np.dtype([("low", "<f4"), ("high", "<f4"), ("total", "<f8"), ("finite", "<u4")])
"""Statistics of some consecutive steps: the smallest and the largest finite value (NaN if there is none), the sum of
the finite values, and their number. NaN and infinities are gaps."""

Buckets = npt.NDArray[np.void]
"""An array of :data:`BUCKET`, of shape ``[buckets]``."""


def empty(count: int) -> Buckets:
    """Make buckets without values, of shape ``[count]``."""
    buckets = np.zeros(count, BUCKET)
    buckets["low"] = buckets["high"] = np.nan
    return buckets


def downsample(values: npt.NDArray[np.floating], width: int) -> Buckets:
    """Put values into buckets of ``width`` values; the last bucket may have fewer."""
    starts = np.arange(0, len(values), width)
    finite = np.isfinite(values)
    all_finite = bool(finite.all())
    clean = values if all_finite else np.where(finite, values, np.nan)
    buckets = np.empty(len(starts), BUCKET)
    buckets["low"] = np.fmin.reduceat(clean, starts)
    buckets["high"] = np.fmax.reduceat(clean, starts)
    buckets["total"] = np.add.reduceat(values if all_finite else np.where(finite, values, 0), starts, dtype=np.float64)
    buckets["finite"] = np.add.reduceat(finite, starts, dtype=np.uint32)
    return buckets


def merge(buckets: Buckets, number: int) -> Buckets:
    """Merge each ``number`` neighbouring buckets into one; the last one may merge fewer."""
    if number == 1:
        return buckets
    starts = np.arange(0, len(buckets), number)
    merged = np.empty(len(starts), BUCKET)
    merged["low"] = np.fmin.reduceat(buckets["low"], starts)
    merged["high"] = np.fmax.reduceat(buckets["high"], starts)
    merged["total"] = np.add.reduceat(buckets["total"], starts)
    merged["finite"] = np.add.reduceat(buckets["finite"], starts)
    return merged
