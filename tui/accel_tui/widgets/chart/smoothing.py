"""Smoothing: the exponential moving average of a curve, without its bias towards the first value.

What is averaged are the means of a curve's buckets, each as one value: single steps where they are known as such, and
as many steps as one dot stands for where they are not. So a weight smooths as much as can be seen of a run.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from accel_tui.run.curve import Curve, Floats


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
    correction = _correction(weight)
    sums = (1 - weight) * values[known]
    reach = 1  # each sum is of so many values, and of twice as many after a turn
    while reach < min(known.size, len(correction)):
        sums[reach:] += weight**reach * sums[:-reach]
        reach *= 2
    sums[: len(correction)] /= correction[: known.size]
    smoothed[known] = sums
    return smoothed


def smoothed(curve: Curve, weight: float) -> Curve:
    """A curve whose buckets have the moving average of their means in place of their values."""
    means = smooth(curve.means, weight)
    return replace(curve, low=means, high=means, total=np.where(curve.finite > 0, means, 0) * curve.finite)


@lru_cache(maxsize=8)
def _correction(weight: float) -> Floats:
    """The sum of all weights of the first, second, ... value, until it is 1 to within what a float tells apart."""
    count = math.ceil(math.log(1e-17) / math.log(weight)) if weight else 1
    return 1 - weight ** np.arange(1.0, count + 1)
