"""Downsampling of steps to buckets that keep minima and maxima, on NumPy arrays."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BUCKET = np.dtype([("low", "<f4"), ("high", "<f4"), ("total", "<f8"), ("finite", "<u4")])
"""Statistics of some consecutive steps: the smallest and the largest finite value (NaN if there is none), the sum of
the finite values, and their number. NaN and infinities are gaps."""

Buckets = npt.NDArray[np.void]
"""An array of :data:`BUCKET`, of shape ``[buckets]``."""


class Statistics(NamedTuple):
    """The fields of :data:`BUCKET` as arrays of any types, all of one shape."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    total: npt.NDArray[np.float64]
    finite: npt.NDArray[Any]

    def merge_from(self, starts: npt.NDArray[np.intp]) -> "Statistics":
        """Merge the buckets from each of ``starts``, rising, up to the next one; along the last axis."""
        return Statistics(
            np.fmin.reduceat(self.low, starts, axis=-1),
            np.fmax.reduceat(self.high, starts, axis=-1),
            np.add.reduceat(self.total, starts, axis=-1),
            np.add.reduceat(self.finite, starts, axis=-1, dtype=self.finite.dtype),
        )


def statistics(values: npt.NDArray[np.floating], starts: npt.NDArray[np.intp]) -> Statistics:
    """Reduce the values from each of ``starts``, rising, up to the next one to a bucket; along the last axis."""
    finite = np.isfinite(values)
    all_finite = bool(finite.all())
    clean = values if all_finite else np.where(finite, values, np.nan)
    return Statistics(
        np.fmin.reduceat(clean, starts, axis=-1),
        np.fmax.reduceat(clean, starts, axis=-1),
        np.add.reduceat(values if all_finite else np.where(finite, values, 0), starts, axis=-1, dtype=np.float64),
        np.add.reduceat(finite, starts, axis=-1, dtype=np.int64),
    )


def empty(count: int) -> Buckets:
    """Make buckets without values, of shape ``[count]``."""
    buckets = np.zeros(count, BUCKET)
    buckets["low"] = buckets["high"] = np.nan
    return buckets


def downsample(values: npt.NDArray[np.floating], width: int) -> Buckets:
    """Put values into buckets of ``width`` values; the last bucket may have fewer."""
    return _packed(statistics(values, np.arange(0, len(values), width)))


def merge(buckets: Buckets, number: int) -> Buckets:
    """Merge each ``number`` neighbouring buckets into one; the last one may merge fewer."""
    if number == 1:
        return buckets
    return _packed(bucket_statistics(buckets).merge_from(np.arange(0, len(buckets), number)))


def bucket_statistics(buckets: Buckets) -> Statistics:
    """Views of the buckets' fields."""
    return Statistics(*(buckets[name] for name in Statistics._fields))


def _packed(fields: Statistics) -> Buckets:
    buckets = np.empty(len(fields.low), BUCKET)
    for name, values in zip(Statistics._fields, fields, strict=True):
        buckets[name] = values
    return buckets
