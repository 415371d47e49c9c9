"""Confidence intervals and paired tests of metrics, by resampling examples.

A metric is a function of a sum of states over examples, so a resample is a weighted sum: of examples drawn with
replacement for an interval (the percentile bootstrap of Efron and Tibshirani, *An Introduction to the Bootstrap*, 13),
or of the states of two models, swapped at random for each example, for a test of their difference (a paired
permutation test: Good, *Permutation Tests*, 3). Examples that depend on their neighbours, such as windows of a time
series, are drawn and swapped in blocks of neighbours (the circular block bootstrap: Lahiri, *Resampling Methods for
Dependent Data*, 2). Without TensorFlow.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_DRAWN = 1 << 22
"""Counts of examples that are drawn at a time at most, 32 MiB."""


class ConfidenceInterval(NamedTuple):
    """A confidence interval."""

    low: float
    """Its lower end; NaN if it is unknown."""
    high: float
    """Its upper end."""


def bootstrap_sums(states: npt.NDArray[np.float32], resamples: int, seed: int, block: int = 1) -> Floats:
    """Sums of states over examples that are drawn with replacement, as many as there are.

    Blocks may begin at any example, and the first one follows the last. If the examples are not a multiple of a block,
    one block more is drawn, and the sums are scaled to the number of examples.

    The same number of examples and the same seed draw the same examples, so that the resamples of two models on one
    split are paired.

    Args:
        states: ``[examples, width]``.
        resamples: Their number.
        seed: Of the random generator.
        block: Examples in a row that are drawn together, at most all.

    Returns:
        ``[resamples, width]``.
    """
    generator, examples = np.random.default_rng(seed), len(states)
    exact, blocks = _sums_in_a_row(states, block), -(-examples // block)
    sums = np.empty((resamples, states.shape[1]))
    rows = max(1, _DRAWN // max(1, examples))
    for first in range(0, resamples, rows):
        part = slice(first, min(first + rows, resamples))
        counts = generator.multinomial(blocks, np.full(examples, 1 / examples), size=part.stop - part.start)
        sums[part] = counts.astype(np.float64) @ exact
    return sums * (examples / (blocks * block))


def _sums_in_a_row(states: npt.NDArray[np.float32], block: int) -> Floats:
    """The sums of the states of each example and of those that follow it in its block, ``[examples, width]``."""
    if block == 1:
        return states.astype(np.float64)
    sums = np.cumsum(np.concatenate([np.zeros_like(states[:1]), states, states[: block - 1]]), 0, np.float64)
    return sums[block:] - sums[:-block]


def swapped_sums(
    first: npt.NDArray[np.float32], second: npt.NDArray[np.float32], resamples: int, seed: int, block: int = 1
) -> tuple[Floats, Floats]:
    """Sums of the states of two models, whose states of each example are swapped with a probability of a half.

    Args:
        first: The states of one model, ``[examples, width]``.
        second: The states of the other one on the same examples.
        resamples: How often.
        seed: Of the random generator.
        block: Examples in a row that are swapped together.

    Returns:
        The sums of both, ``[resamples, width]``.
    """
    generator = np.random.default_rng(seed)
    total = first.sum(0, dtype=np.float64)
    difference = np.add.reduceat(second.astype(np.float64) - first, np.arange(0, len(first), block))
    blocks = len(difference)
    moved = np.empty((resamples, first.shape[1]))
    rows = max(1, _DRAWN // max(1, blocks))
    for start in range(0, resamples, rows):
        part = slice(start, min(start + rows, resamples))
        swapped = generator.integers(0, 2, (part.stop - part.start, blocks), np.int8)
        moved[part] = swapped.astype(np.float64) @ difference
    return total + moved, second.sum(0, dtype=np.float64) - moved


def percentile_interval(samples: Floats, confidence: float) -> ConfidenceInterval:
    """The interval with the central share of some resampled values; NaN without a finite one.

    Args:
        samples: Values of a metric, ``[resamples]``; those that are not finite are left out.
        confidence: The share, 0 to 1.
    """
    finite = samples[np.isfinite(samples)]
    if not len(finite):
        return ConfidenceInterval(np.nan, np.nan)
    low, high = np.quantile(finite, [(1 - confidence) / 2, (1 + confidence) / 2])
    return ConfidenceInterval(float(low), float(high))


def share_interval(right: int, examples: int, confidence: float) -> ConfidenceInterval:
    """Wilson's interval of a share of independent examples; NaN without examples.

    Unlike the bootstrap's, it is as wide where all examples or no examples are right, and every resample is the
    same, as where one is not.

    Args:
        right: The examples that count.
        examples: All of them.
        confidence: The level, 0 to 1.
    """
    from statistics import NormalDist

    if not examples:
        return ConfidenceInterval(np.nan, np.nan)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = right / examples, z * z / examples
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / examples + spread / (4 * examples))
    return ConfidenceInterval(float(max(0.0, middle - half)), float(min(1.0, middle + half)))


def p_value(difference: float, swapped: Floats) -> float:
    """The probability of at least this difference, to either side, if two models are equally good.

    Args:
        difference: The one that was measured.
        swapped: Those with the models swapped at random for each example, ``[resamples]``.

    Returns:
        More than 0, as the measured one counts as a resample, too; NaN for a difference that is not finite. Of the
        resamples, those that are not finite are left out.
    """
    if not np.isfinite(difference):
        return float("nan")
    swapped = swapped[np.isfinite(swapped)]
    as_large = np.abs(swapped) >= abs(difference) * (1 - 1e-9)  # sums in another order may round differently
    return float((1 + np.count_nonzero(as_large)) / (1 + len(swapped)))
