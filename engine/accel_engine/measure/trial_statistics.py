"""Compares plans whose steps took turns: in which order they do, what they differ by, and whether that may be chance.

Two turns that follow each other are slowed by the same other programs, so that plans are compared round by round.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from accel_engine.inference.measurement.percentiles import CONFIDENCE, interval_ranks

RELEVANT = 1.02
"""A ratio of rates from which a difference matters; a smaller one is worth no change."""

APART = 1.1
"""The same for rates that were measured at different times, not in turns: other programs make smaller ones."""

LEAST_ROUNDS = 6
"""Rounds from which an interval can be told."""

LESS = 0.95
"""A share of memory or energy below which a plan takes less."""

RELEVANT_LOSS = 0.01
"""A difference of results, as a share of the first one, from which it matters; orders of the examples that end nearly
the same make smaller ones certain."""

_STUDENT = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5th percentile of Student's t distribution by degrees of freedom."""

_NORMAL = 2.0


T = TypeVar("T")


class PlanVerdict(StrEnum):
    """How a plan compares with another one."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference"


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The difference between two plans."""

    value: float
    """Their ratio or difference: the second one's against the first one's."""
    low: float
    """The lower end of its confidence interval; ``-inf`` where there are too few rounds to tell."""
    high: float
    """The upper end; ``inf`` where there are too few rounds to tell."""
    verdict: PlanVerdict
    """Whether the second one is better, as far as the rounds tell."""
    rounds: int

    @property
    def is_settled(self) -> bool:
        """Whether the rounds tell: there is a difference that matters, or certainly none."""
        return self.verdict is not PlanVerdict.NO_DIFFERENCE or (self.low > 1 / RELEVANT and self.high < RELEVANT)


def in_turn(trials: Sequence[T], round_number: int) -> Sequence[T]:
    """Trials in the order of a round: A B C, C B A and so on, so that a drift slows all alike.

    Args:
        trials: The trials.
        round_number: The round, from 0.
    """
    return trials[::-1] if round_number % 2 else trials


def compare_rates(before: Sequence[float], after: Sequence[float]) -> PlanComparison:
    """Compare rates by the median of their ratios, with an interval from order statistics.

    It is better or worse only if the whole interval is on one side of 1 and the ratio matters.

    Args:
        before: Rates of the first plan in each round, above 0.
        after: Rates of the second plan in the same rounds.
    """
    ratios = sorted(second / first for first, second in zip(before, after, strict=True))
    if not ratios:
        return PlanComparison(math.nan, -math.inf, math.inf, PlanVerdict.NO_DIFFERENCE, 0)
    middle = statistics.median(ratios)
    ranks = interval_ranks(len(ratios), 0.5, CONFIDENCE)
    low = ratios[ranks[0] - 1] if ranks[0] else -math.inf
    high = ratios[ranks[1] - 1] if ranks[1] else math.inf
    return PlanComparison(middle, low, high, _verdict(middle, low, high), len(ratios))


def _verdict(ratio: float, low: float, high: float) -> PlanVerdict:
    """Whether a ratio of rates is on one side of 1 with its whole interval, and matters."""
    if low > 1 and ratio > RELEVANT:
        return PlanVerdict.BETTER
    return PlanVerdict.WORSE if high < 1 and ratio < 1 / RELEVANT else PlanVerdict.NO_DIFFERENCE


def compare_apart(before: Sequence[float], after: Sequence[float]) -> PlanComparison | None:
    """Compare rates that were not measured in the same rounds; ``None`` if one plan has no rates.

    Nothing is better or worse unless the intervals of the two medians are apart, after enough rounds.
    """
    if not before or not after:
        return None
    value, rounds = statistics.median(after) / statistics.median(before), min(len(before), len(after))
    if rounds < LEAST_ROUNDS:
        return PlanComparison(value, -math.inf, math.inf, PlanVerdict.NO_DIFFERENCE, rounds)
    (before_low, before_high), (after_low, after_high) = spread(before), spread(after)
    low, high = after_low / before_high, after_high / before_low
    return PlanComparison(value, low, high, _verdict(value, low, high), rounds)


def compare_losses(before: Sequence[float], after: Sequence[float], *, lower_is_better: bool = True) -> PlanComparison:
    """Compare results of training in several orders of the examples, by the mean of their differences.

    Its interval is Student's; the difference must also matter. A result that is not finite is worse than any other one.

    Args:
        before: Results of the first plan, one for each order.
        after: Results of the second plan in the same orders.
        lower_is_better: Whether they are losses, or errors.
    """
    sign = 1.0 if lower_is_better else -1.0
    count = len(before)
    broken = sum(map(_is_broken, before)), sum(map(_is_broken, after))
    if any(broken):
        verdict = PlanVerdict.NO_DIFFERENCE
        if broken[0] != broken[1]:
            verdict = PlanVerdict.WORSE if broken[1] > broken[0] else PlanVerdict.BETTER
        return PlanComparison(math.nan, -math.inf, math.inf, verdict, count)
    differences = [second - first for first, second in zip(before, after, strict=True)]
    mean = statistics.fmean(differences)
    spread = statistics.stdev(differences) / math.sqrt(count) if count > 1 else math.inf
    margin = spread * (_STUDENT[count - 1] if count <= len(_STUDENT) else _NORMAL) if count > 1 else math.inf
    low, high = mean - margin, mean + margin
    verdict = PlanVerdict.NO_DIFFERENCE
    if abs(mean) < RELEVANT_LOSS * abs(statistics.fmean(before)):
        return PlanComparison(mean, low, high, verdict, count)
    if sign * (high if sign > 0 else low) < 0:
        verdict = PlanVerdict.BETTER
    elif sign * (low if sign > 0 else high) > 0:
        verdict = PlanVerdict.WORSE
    return PlanComparison(mean, low, high, verdict, count)


def _is_broken(value: float) -> bool:
    return not math.isfinite(value)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the median of values; all of them where they are too few."""
    ordered = sorted(values)
    low, high = interval_ranks(len(ordered), 0.5, CONFIDENCE)
    return ordered[low - 1 if low else 0], ordered[high - 1 if high else -1]
