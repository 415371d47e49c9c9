"""Whether a run does worse since its plan was changed, from the series that it recorded before and after."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.measure.trial_statistics import RELEVANT, Comparison, Verdict, compare_losses

WINDOW_SECONDS = 0.5
"""Steps of this many seconds give a rate."""

LEAST_WINDOWS = 8
"""Rates on either side from which they are compared."""

CLEARLY_SLOWER = 0.95
"""A ratio of rates below which a run is clearly slower, if their ranks say so, too."""

APART = 2.8
"""Standard deviations from which ranks are no chance, about as certain as two 95 percent intervals that are apart."""

CLEARLY_DIFFERENT = 0.05
"""A difference of losses above which a run is clearly worse, if its interval says so, too.

As a share of the loss before, or of the spread of its steps where that is larger: a loss can be 0 or less.
"""

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
        verdict = ": worse" if self.is_worse else ", which may be chance" if self.may_be_worse else ""
        return figures + verdict


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
    first, second = _blocks(before), _blocks(after)
    comparison: Comparison = compare_losses(first, second, lower_is_better=lower_is_better)
    middles = statistics.fmean(first), statistics.fmean(second)
    difference = middles[1] - middles[0] if lower_is_better else middles[0] - middles[1]
    scale = max(abs(middles[0]), float(np.std(before, dtype=np.float64)))
    is_large = not math.isfinite(middles[1]) or difference > CLEARLY_DIFFERENT * scale
    return Outcome(
        *middles,
        name,
        is_worse=comparison.verdict is Verdict.WORSE and is_large,
        is_better=comparison.verdict is Verdict.BETTER,
    )


def _blocks(values: npt.NDArray[np.floating]) -> list[float]:
    return [float(part.mean()) for part in np.array_split(values.astype(np.float64), BLOCKS)]
