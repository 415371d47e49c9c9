"""Recovers the values of single batches from Keras' running means.

Keras logs the mean over the epoch so far, ``total / count`` of a metric. The difference of two totals over the
difference of their counts is the batch's own value, if the weight of each batch is known.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

PRECISE_BATCHES = 1 << 16
"""Maximum batches of an epoch from which single ones can be recovered.

Keras sums in float32, which rounds a mean to 2**-24 of itself, so the error of a batch's value after ``k`` others is
about ``k * 2**-23`` of the mean: 1e-4 after a thousand batches, and 1% here.
"""


MAX_ERROR = 0.1
"""Maximum rounding error, relative to a batch's value or to the usual value, whichever is larger."""

_ROUNDING = 2.0**-23  # of a float32 total, which is rounded at each addition and at the division
_OF_ONE = 1e-4  # the largest rounding error that is taken from a value of 1


@dataclass(frozen=True, slots=True)
class RunningMean:
    """The state of a running mean."""

    mean: float = 0.0
    """Its value."""
    count: float = 0.0
    """The sum of weights."""


def batch_weights(count: float, calls: int, weight: float, *, epoch_ended: bool) -> Values | None:
    """Find the weights of consecutive batches.

    Args:
        count: The sum of their weights.
        calls: Number of batches.
        weight: Weight of the epoch's first batch.
        epoch_ended: Whether they include the epoch's last batch, which may be smaller.

    Returns:
        One weight per batch; ``None`` if they cannot be determined.
    """
    if calls == 1:
        return np.array([count]) if count > 0 else None
    each = np.full(calls, weight)
    each[-1] = count - (calls - 1) * weight
    return each if 0 < each[-1] <= weight and (epoch_ended or each[-1] == weight) else None


def recover_values(before: RunningMean, means: Values, weights: Values, usual: float = 0.0) -> tuple[Values, float]:
    """Recover the value of each batch; NaN where the rounding error is too large.

    After one very large value, a float32 total is too coarse for the small values that follow: they would be noise of
    the size of the large value's rounding error.

    Args:
        before: The running mean before the batches.
        means: The running mean after each batch.
        weights: Weight of each batch.
        usual: The usual size of earlier values, as returned by the previous call.

    Returns:
        The values, and their usual size: the smallest median so far of those that exceed their errors.
    """
    totals = np.concatenate([[before.mean * before.count], means * (before.count + np.cumsum(weights))])
    values: Values = np.diff(totals) / weights
    error = _ROUNDING * np.maximum(np.abs(totals[:-1]), np.abs(totals[1:])) / weights
    sizes = np.abs(values)
    certain = sizes[np.isfinite(sizes) & (sizes > error)]
    if len(certain):
        usual = min(usual or np.inf, float(np.median(certain)))
    values[np.abs(values - 1) <= np.minimum(error, _OF_ONE)] = 1.0  # an accuracy is not above it
    values[error > MAX_ERROR * np.maximum(sizes, usual)] = np.nan
    return values, usual
