"""Figures of one label at a threshold."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics.figures import Curves, curves


@dataclass(frozen=True, slots=True, eq=False)
class ScoredLabel:
    """Histograms of the probabilities of a label, int64 ``[bins]``.

    Attributes:
        name: Its name.
        positives: Of the examples that have it.
        negatives: Of the others.
    """

    name: str
    positives: npt.NDArray[np.int64]
    negatives: npt.NDArray[np.int64]

    @property
    def curves(self) -> Curves:
        """Curves over the threshold."""
        return curves(self.positives, self.negatives)


@dataclass(frozen=True, slots=True)
class ThresholdFigures:
    """Figures at a threshold; NaN where nothing can be divided.

    Attributes:
        positives: Examples with the label.
        negatives: Examples without it.
        predicted: Examples that are predicted to have it.
        precision: Share of these that have it.
        recall: Share of the positives that are found.
        false_positive_rate: Share of the negatives that are predicted to have it.
        accuracy: Share of all examples that are right.
    """

    positives: int
    negatives: int
    predicted: int
    precision: float
    recall: float
    false_positive_rate: float
    accuracy: float

    @property
    def examples(self) -> int:
        """All examples."""
        return self.positives + self.negatives

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if none is found."""
        whole = self.positives + self.predicted
        return 2 * self.recall * self.positives / whole if self.positives else np.nan


def figures_at(scored: ScoredLabel, threshold: float) -> ThresholdFigures:
    """Figures at a threshold, which is rounded to the nearest edge of a bin."""
    first = round(threshold * len(scored.positives))
    found, wrong = int(scored.positives[first:].sum()), int(scored.negatives[first:].sum())
    positives, negatives = int(scored.positives.sum()), int(scored.negatives.sum())
    return ThresholdFigures(
        positives,
        negatives,
        found + wrong,
        found / (found + wrong) if found + wrong else np.nan,
        found / positives if positives else np.nan,
        wrong / negatives if negatives else np.nan,
        (found + negatives - wrong) / (positives + negatives) if positives + negatives else np.nan,
    )


def best_threshold(scored: ScoredLabel) -> float:
    """The threshold with the highest F1; of several, the one closest to 0.5."""
    thresholds = np.arange(len(scored.positives) + 1) / len(scored.positives)
    f1 = np.nan_to_num([figures_at(scored, float(each)).f1 for each in thresholds])
    best = np.nonzero(f1 >= f1.max() - 1e-12)[0]
    return float(thresholds[best[np.argmin(np.abs(thresholds[best] - 0.5))]])
