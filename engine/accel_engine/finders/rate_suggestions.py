"""Suggests learning rates from the losses of ramps, or says why none can be suggested."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from accel_engine.finders.rate_curve import Floats, Ramp, RateCurve, smoothed_curve

LEAST_POINTS = 10
"""Points of a curve below which nothing can be suggested."""

SURE = 4.0
"""How far the loss has to fall at least, in standard errors of the smoothed curve."""

RELEVANT = 0.02
"""How far the loss has to fall at least, as a share of its size."""


class Rule(StrEnum):
    """How a rate follows from a curve."""

    STEEPEST = "steepest"
    VALLEY = "valley"
    MINIMUM_TENTH = "minimum / 10"
    MINIMUM_THIRD = "minimum / 3"


ABOUT = {
    Rule.STEEPEST: "fastest fall",
    Rule.VALLEY: "middle of fall",
    Rule.MINIMUM_TENTH: "tenth of its rate",
    Rule.MINIMUM_THIRD: "third of its rate",
}
"""What each rule takes, in a table whose first column names the rule."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A learning rate."""

    rule: Rule
    """How it was found."""
    rate: float
    """The rate from the mean of all ramps; of the optimizer, where a plan's is scaled."""
    low: float
    """The lowest rate of single ramps and of their mean."""
    high: float
    """The highest rate of single ramps and of their mean."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The learning rates that ramps suggest."""

    curve: RateCurve | None
    """The smoothed mean of their losses; ``None`` if a ramp has no finite loss."""
    found: tuple[Suggestion, ...] = ()
    """One for each rule, if there is no problem."""
    problem: str = ""
    """Why nothing can be suggested, in words."""
    remark: str = ""
    """The limits of the suggestions, in words."""

    def best_of(self, losses: Mapping[Rule, float]) -> Suggestion | None:
        """The suggestion with the lowest loss, or the one by :data:`PREFERRED` if its loss is about as low.

        Args:
            losses: The losses that trainings with the suggestions ended with; empty if there were none.
        """
        preferred = next((each for each in self.found if each.rule is PREFERRED), None)
        if preferred is None or len(losses) < len(self.found):
            return preferred
        best = min(self.found, key=lambda each: losses[each.rule])
        lowest = losses[best.rule]
        return preferred if losses[PREFERRED] <= lowest + ABOUT_AS_LOW * abs(lowest) else best


PREFERRED = Rule.MINIMUM_TENTH
"""The rule whose rate is the answer unless another one trains better; see ``benchmarks/README.md``."""

ABOUT_AS_LOW = 0.01
"""Share of a loss by which another one may be higher without being worse."""


def suggest(ramps: Sequence[Ramp]) -> Suggestions:
    """Suggest learning rates.

    Args:
        ramps: A ramp over the same rates for each seed.
    """
    if not ramps or not min(len(ramp.rates) for ramp in ramps):
        return Suggestions(None, problem="the loss is not finite at the lowest learning rate: it needs lower ones")
    curve = smoothed_curve(ramps)
    if problem := _problem(curve):
        return Suggestions(curve, problem=problem)
    single = [each for ramp in ramps if not _problem(each := smoothed_curve([ramp]))]
    found = tuple(_suggestion(rule, curve, single) for rule in Rule)
    return Suggestions(curve, found, remark=_remark(curve, len(ramps), len(single)))


def _suggestion(rule: Rule, curve: RateCurve, single: Sequence[RateCurve]) -> Suggestion:
    rate, others = rate_by(rule, curve), [rate_by(rule, each) for each in single]
    return Suggestion(rule, rate, min([rate, *others]), max([rate, *others]))


def rate_by(rule: Rule, curve: RateCurve) -> float:
    """The rate that a rule takes from a curve, whose loss falls somewhere."""
    lowest = int(np.argmin(curve.losses))
    match rule:
        case Rule.STEEPEST:
            slopes = np.gradient(curve.losses[: max(2, lowest + 1)])
            return float(curve.rates[int(np.argmin(slopes))])
        case Rule.MINIMUM_TENTH:
            return float(curve.rates[lowest]) / 10
        case Rule.MINIMUM_THIRD:
            return float(curve.rates[lowest]) / 3
    first, last = longest_fall(curve.losses)
    return float(curve.rates[(first + last) // 2])


def longest_fall(losses: Floats) -> tuple[int, int]:
    """The first and the last index of the longest series of points, each lower than the one before; as in fastai.

    Points between may be higher. Of series of the same length, the lowest one at the end counts.
    """
    lengths, starts = np.ones(len(losses), int), np.arange(len(losses))
    for index in range(1, len(losses)):
        higher = np.flatnonzero(losses[:index] > losses[index])
        if len(higher):
            best = higher[int(np.argmax(lengths[higher]))]
            lengths[index], starts[index] = lengths[best] + 1, starts[best]
    ends = np.flatnonzero(lengths == lengths.max())
    end = int(ends[int(np.argmin(losses[ends]))])
    return int(starts[end]), end


def _problem(curve: RateCurve) -> str:
    """Why nothing can be suggested from a curve; empty if something can."""
    if len(curve.rates) < LEAST_POINTS:
        if curve.has_exploded:
            return "the loss explodes at once: the ramp needs lower learning rates, or the model is not stable"
        return f"there are only {len(curve.rates)} steps, which are too few"
    lowest = int(np.argmin(curve.losses))
    fall, size = curve.level - float(curve.losses[lowest]), max(abs(curve.level), 1e-12)
    if fall < SURE * curve.noise and curve.noise > RELEVANT / SURE * size:
        return "the losses of single steps differ too much: use more seeds, more steps or a larger batch"
    if fall < max(RELEVANT * size, SURE * curve.noise):
        if curve.has_exploded and lowest < len(curve.rates) // 2:
            return "the loss only rises: the model has learned what it can, or needs another optimizer"
        return "the loss is flat: it falls at no learning rate"
    return ""


def _remark(curve: RateCurve, ramps: int, usable: int) -> str:
    remarks = []
    if int(np.argmin(curve.losses)) >= len(curve.rates) - 2 and not curve.has_exploded:
        remarks.append("the loss still falls at the highest learning rate: a higher one may be better")
    if int(np.argmin(curve.losses)) < LEAST_POINTS:
        remarks.append("the loss falls at the lowest learning rates already: lower ones may be better")
    if usable < ramps:
        remarks.append(f"{ramps - usable} of {ramps} seeds suggest nothing by themselves")
    return "; ".join(remarks)


def spread_text(suggestion: Suggestion) -> str:
    """The lowest and the highest rate, in words; empty if they are the same."""
    return "" if math.isclose(suggestion.low, suggestion.high) else f"{suggestion.low:.2g} to {suggestion.high:.2g}"
