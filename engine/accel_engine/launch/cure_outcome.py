"""Whether a run does worse since its plan was changed, from the series that it recorded before and after."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.launch.trial_statistics import RELEVANT, Comparison, Verdict, compare_losses

WINDOW_SECONDS = 0.5
"""Steps of this many seconds give a rate."""

LEAST_WINDOWS = 8
"""Rates on either side from which they are compared."""

CLEARLY_SLOWER = 0.95
"""A ratio of rates below which a run is clearly slower, if their ranks say so, too."""

APART = 2.8
"""Standard deviations from which ranks are no chance, about as certain as two 95 percent intervals that are apart."""

CLEARLY_HIGHER = 1.05
"""A ratio of losses above which a run is clearly worse, if the interval of the difference says so, too."""

BLOCKS = 8
"""Means of losses on either side that are compared."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run compares with itself before a change.

    Attributes:
        before: The value before.
        after: The value after it.
        unit: Of both.
        is_worse: Whether it is clearly worse.
        may_be_worse: Whether it is worse, but that may be chance: more steps can tell.
        is_better: Whether it is better, and that is no chance as far as the steps tell.
    """

    before: float
    after: float
    unit: str
    is_worse: bool
    may_be_worse: bool = False
    is_better: bool = False

    @property
    def text(self) -> str:
        """In words."""
        figures = f"{self.after:,.4g} {self.unit} after the change, {self.before:,.4g} before"
        if self.may_be_worse:
            return f"{figures}, which may be chance"
        return figures + (": worse" if self.is_worse else ": better" if self.is_better else "")


def window_rates(ends: Sequence[tuple[float, int]], examples: float = 1.0) -> list[float]:
    """Rates over windows of time, with all that comes between steps; windows without a step are left out.

    Args:
        ends: End time of each chunk, in seconds, and the number of steps taken by then.
        examples: Examples of a step.
    """
    rates: list[float] = []
    if not ends:
        return rates
    began, first = ends[0]
    for time, step in ends[1:]:
        if time - began >= WINDOW_SECONDS:
            if time - began < 3 * WINDOW_SECONDS or step - first == 1:  # else it was paused, or it did something else
                rates.append(examples * (step - first) / (time - began))
            began, first = time, step
    return rates


def compare_speed(before: Sequence[float], after: Sequence[float], unit: str = "examples/s") -> Outcome | None:
    """Compare rates before and after a change; ``None`` while there are too few."""
    if min(len(before), len(after)) < LEAST_WINDOWS:
        return None
    middles = statistics.median(before), statistics.median(after)
    is_slower, is_faster = middles[1] < CLEARLY_SLOWER * middles[0], middles[1] > RELEVANT * middles[0]
    score = _rank_score(before, after)
    return Outcome(
        *middles,
        unit,
        is_worse=is_slower and score < -APART,
        may_be_worse=is_slower and score >= -APART,
        is_better=is_faster and score > APART,
    )


def _rank_score(before: Sequence[float], after: Sequence[float]) -> float:
    """How many standard deviations the ranks of the values after a change are above chance.

    It is Mann and Whitney's U (1947). One stalled window does not move it far, as it would an interval of few values.
    """
    first, second = np.array(before)[:, np.newaxis], np.array(after)
    higher = float((second > first).sum() + 0.5 * (second == first).sum())
    pairs = len(before) * len(after)
    return (higher - pairs / 2) / math.sqrt(pairs * (len(before) + len(after) + 1) / 12)


def compare_series(
    before: npt.NDArray[np.floating], after: npt.NDArray[np.floating], name: str, *, lower_is_better: bool = True
) -> Outcome | None:
    """Compare the losses of the same number of steps before and after a change; ``None`` while there are too few.

    Training lowers the loss, so that a clearly higher one is worse. Means of blocks of steps are compared, as single
    steps depend on their batch.

    Args:
        before: The losses before it.
        after: Those after it.
        name: Name of the series.
        lower_is_better: Whether lower values are better.
    """
    if min(len(before), len(after)) < 2 * BLOCKS:
        return None
    return compare_results(_blocks(before), _blocks(after), name, lower_is_better=lower_is_better)


def compare_results(
    first: Sequence[float], second: Sequence[float], name: str, *, lower_is_better: bool = True
) -> Outcome:
    """Compare two runs, or two parts of a run, by results that belong together in pairs.

    Args:
        first: Those without the change.
        second: Those with it.
        name: What they are.
        lower_is_better: Whether lower values are better.
    """
    comparison: Comparison = compare_losses(first, second, lower_is_better=lower_is_better)
    middles = _mean(first), _mean(second)
    ratio = middles[1] / middles[0] if middles[0] else math.inf
    is_large = not math.isfinite(middles[1]) or (ratio > CLEARLY_HIGHER if lower_is_better else ratio < CLEARLY_SLOWER)
    is_worse = comparison.verdict is Verdict.WORSE and is_large
    return Outcome(*middles, name, is_worse, is_better=comparison.verdict is Verdict.BETTER)


def beats_trend(
    before: npt.NDArray[np.floating], after: npt.NDArray[np.floating], *, lower_is_better: bool = True
) -> bool:
    """Whether losses after a change are better than the straight line through those before it.

    Losses fall more slowly as training goes on, so that a line promises too much rather than too little.

    Args:
        before: The losses before it.
        after: As many of them, after a gap of the same length.
        lower_is_better: Whether lower values are better.
    """
    first, second = _blocks(before), _blocks(after)
    if not np.isfinite(first).all():
        return bool(np.isfinite(second).all())
    line = np.polynomial.Polynomial.fit(range(BLOCKS), first, 1)
    expected = [float(line(2 * BLOCKS + index)) for index in range(BLOCKS)]
    return compare_losses(expected, second, lower_is_better=lower_is_better).verdict is Verdict.BETTER


def _blocks(values: npt.NDArray[np.floating]) -> list[float]:
    return [float(part.mean()) for part in np.array_split(values.astype(np.float64), BLOCKS)]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)
