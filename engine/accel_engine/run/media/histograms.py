"""Makes a histogram of what a script logs."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.run.media.images import numbers_of
from accel_engine.run.media.items import Histogram

BINS = 64
"""Bins by default."""


def histogram_of(values: Any, bins: int = BINS) -> Histogram:
    """Count the values of an array or a tensor of any shape in bins of one width.

    Args:
        values: Numbers or booleans. Those that are NaN or infinite are counted, and in no bin.
        bins: Number of bins from the smallest to the largest value.

    Raises:
        ValueError: There are no values, or they are no numbers.
    """
    numbers = numbers_of(values, "a histogram").astype(np.float64).ravel()
    if not len(numbers):
        raise ValueError("a histogram needs values; this array is empty")
    if bins < 1:
        raise ValueError(f"a histogram has at least 1 bin, not {bins}")
    finite = numbers[np.isfinite(numbers)]
    not_finite = len(numbers) - len(finite)
    if not len(finite):
        return Histogram(np.zeros(0), np.zeros(0), not_finite)
    counts, edges = np.histogram(finite, _bins_or_edges(finite.min(), finite.max(), bins))
    return Histogram(edges.astype(np.float64), counts.astype(np.float64), not_finite)


def _bins_or_edges(low: float, high: float, bins: int) -> int | npt.NDArray[np.float64]:
    """The number of bins, or the edges of a single one where float64 cannot divide so wide or so narrow a range."""
    if low == high:
        low, high = low - 0.5, high + 0.5  # as NumPy does
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(low, high, bins + 1)
    return bins if (edges[1:] > edges[:-1]).all() else np.array([low, high])
