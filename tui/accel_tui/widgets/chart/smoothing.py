"""Smoothing: bias-corrected exponential moving average of a curve.

The average is over the means of buckets, that is over steps at full resolution, else over as many steps as one dot
stands for. So a weight smooths as much as is visible.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from accel_tui.run_state.curve import Curve, Floats


def smooth(values: Floats, weight: float) -> Floats:
    """The moving average of values.

    The n-th is ``sum(weight ** (n - i) * values[i]) / sum(weight ** (n - i))`` over all ``i`` up to ``n``: the bias
    correction of Kingma and Ba, "Adam", section 3. NaN stays in place and is ignored.

    Args:
        values: Shape ``[n]``.
        weight: Weight of earlier values, at least 0 and below 1.
    """
    known = np.flatnonzero(~np.isnan(values))
    smoothed: Floats = np.full(len(values), math.nan)
    if not known.size:
        return smoothed
    correction = _correction(weight)
    sums = (1 - weight) * values[known]
    reach = 1  # number of values in each sum, doubled per iteration
    while reach < min(known.size, len(correction)):
        sums[reach:] += weight**reach * sums[:-reach]
        reach *= 2
    sums[: len(correction)] /= correction[: known.size]
    smoothed[known] = sums
    return smoothed


def smoothed(curve: Curve, weight: float) -> Curve:
    """A curve of the moving average of its buckets' means."""
    means = smooth(curve.means, weight)
    return replace(curve, low=means, high=means, total=np.where(curve.finite > 0, means, 0) * curve.finite)


@lru_cache(maxsize=8)
def _correction(weight: float) -> Floats:
    """The sums of weights of the first, second, ... value, until they are 1 within float precision."""
    count = math.ceil(math.log(1e-17) / math.log(weight)) if weight else 1
    return 1 - weight ** np.arange(1.0, count + 1)
