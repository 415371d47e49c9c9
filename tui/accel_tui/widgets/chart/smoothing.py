"""Smoothing: the exponential moving average of a curve, without its bias towards the first value.

What is averaged are the means of a curve's buckets, each as one value: single steps where they are known as such, and
as many steps as one dot stands for where they are not. So a weight smooths as much as can be seen of a run.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from accel_tui.curve import Curve, Floats

_BLOCK = 64  # values that are averaged by one product of matrices


def smooth(values: Floats, weight: float) -> Floats:
    """The moving average of values.

    The n-th is ``sum(weight ** (n - i) * values[i]) / sum(weight ** (n - i))`` over all ``i`` up to ``n``: the
    correction for the bias of Kingma and Ba, "Adam", section 3. NaN stays where it is, and is left out.

    Args:
        values: Of shape ``[n]``.
        weight: Of what was before, at least 0 and below 1.
    """
    known = np.flatnonzero(~np.isnan(values))
    smoothed: Floats = np.full(len(values), math.nan)
    if not known.size:
        return smoothed
    within, fading, correction = _tables(weight)
    blocks = np.zeros((-(-known.size // _BLOCK), _BLOCK))
    blocks.ravel()[: known.size] = values[known]
    averages = blocks @ within
    carried, carry = 0.0, np.empty((len(blocks), 1))
    for place, end in enumerate(averages[:, -1].tolist()):
        carry[place] = carried
        carried = end + fading[-1] * carried
    sums = (averages + carry * fading).ravel()[: known.size]
    sums[: len(correction)] /= correction[: known.size]
    smoothed[known] = sums
    return smoothed


def smoothed(curve: Curve, weight: float) -> Curve:
    """A curve whose buckets have the moving average of their means in place of their values."""
    means = smooth(curve.means, weight)
    return replace(curve, low=means, high=means, total=np.where(curve.finite > 0, means, 0) * curve.finite)


@lru_cache(maxsize=8)
def _tables(weight: float) -> tuple[Floats, Floats, Floats]:
    """What a block's values give for each of its places, how what was before fades there, and the correction."""
    powers = weight ** np.arange(1.0, _BLOCK + 1)
    apart = np.arange(_BLOCK) - np.arange(_BLOCK)[:, np.newaxis]
    within = np.where(apart >= 0, (1 - weight) * weight ** np.maximum(apart, 0.0), 0.0)
    # Until the sum of all weights is 1 to within what a float tells apart.
    count = math.ceil(math.log(1e-17) / math.log(weight)) if weight else 1
    return within, powers, 1 - weight ** np.arange(1.0, count + 1)
