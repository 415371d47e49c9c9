"""From Keras' running means back to what each batch measured.

Keras tells callbacks the mean over the epoch so far, ``total / count`` of a metric. The difference of two totals
over the difference of their counts is the batch's own value, if it is known how much each batch counts.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

PRECISE_BATCHES = 1 << 16
"""Batches of an epoch after which a single one can no longer be told.

Keras adds up in float32, which rounds a mean to 2**-24 of itself, so that a batch's value after ``k`` others is known
to about ``k * 2**-23`` of the mean: to 1e-4 after a thousand batches, and here to 1%.
"""


LARGEST_ERROR = 0.1
"""Of a batch's value, or of the usual one if that is larger: what rounding may make it wrong by."""

_ROUNDING = 2.0**-23  # of a total in float32, which is rounded when it is added to, and again when it is divided


@dataclass(frozen=True, slots=True)
class Point:
    """How far a running mean is.

    Attributes:
        mean: Its value.
        count: The weight of all that it is the mean of.
    """

    mean: float = 0.0
    count: float = 0.0


def weights(count: float, calls: int, weight: float, *, over: bool) -> Values | None:
    """How much each of some batches in a row counts.

    Args:
        count: How much all of them count.
        calls: How many they are.
        weight: How much the first of all counted.
        over: Whether an epoch's last batch is among them, which may be smaller.

    Returns:
        One weight a batch; ``None`` where that cannot be told.
    """
    if calls == 1:
        return np.array([count]) if count > 0 else None
    each = np.full(calls, weight)
    each[-1] = count - (calls - 1) * weight
    return each if 0 < each[-1] <= weight and (over or each[-1] == weight) else None


def recover(before: Point, means: Values, each: Values, usual: float = 0.0) -> tuple[Values, float]:
    """What each batch measured; NaN where rounding leaves too little of it.

    After one very large value, a total in float32 no longer tells the small ones that follow: they would come out as
    noise of the size of what the large one was rounded by.

    Args:
        before: The running mean before them.
        means: The running mean after each of them.
        each: How much each of them counts.
        usual: How large values were before, as this function gave it.

    Returns:
        The values, and how large they usually are: the least median so far of those that are larger than their errors.
    """
    totals = np.concatenate([[before.mean * before.count], means * (before.count + np.cumsum(each))])
    values: Values = np.diff(totals) / each
    error = _ROUNDING * np.maximum(np.abs(totals[:-1]), np.abs(totals[1:])) / each
    sizes = np.abs(values)
    certain = sizes[np.isfinite(sizes) & (sizes > error)]
    if len(certain):
        usual = min(usual or np.inf, float(np.median(certain)))
    values[error > LARGEST_ERROR * np.maximum(sizes, usual)] = np.nan
    return values, usual
