"""Probabilities as histograms, ROC, precision-recall and calibration curves, with a threshold that the user moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import ClassificationReport, MultiLabelReport, OutputReport
from accel_engine.run.diagnostics.figures import Curves, calibration, curves
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.text import shorten
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.plot import Plot, PlotSeries
from accel_tui.widgets.diagnostics.plot_page import PlotPage
from accel_tui.widgets.styled_text import TextSpan

_SHARE = Axis(0.0, 1.0)
_DIAGONAL = PlotSeries(np.array([0.0, 1.0]), np.array([0.0, 1.0]), style="axis")
_BARS = 40


@dataclass(frozen=True, slots=True, eq=False)
class ScoredLabel:
    """Histograms of the probabilities of a label, int64 ``[bins]``."""

    name: str
    positives: npt.NDArray[np.int64]
    """Histogram of the examples that have the label."""
    negatives: npt.NDArray[np.int64]
    """Histogram of the other examples."""

    @property
    def curves(self) -> Curves:
        """Curves over the threshold."""
        return curves(self.positives, self.negatives)


@dataclass(frozen=True, slots=True)
class _ThresholdFigures:
    """Figures at a threshold; NaN where nothing can be divided."""

    positives: int
    """Examples with the label."""
    negatives: int
    """Examples without it."""
    predicted: int
    """Examples that are predicted to have it."""
    precision: float
    """Share of these that have it."""
    recall: float
    """Share of the positives that are found."""
    false_positive_rate: float
    """Share of the negatives that are predicted to have it."""
    accuracy: float
    """Share of all examples that are right."""

    @property
    def examples(self) -> int:
        return self.positives + self.negatives

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if no positive is found, NaN if there is none."""
        whole = self.positives + self.predicted
        return 2 * self.recall * self.positives / whole if self.positives else np.nan


class ScorePlots(PlotPage):
    """Plots of one label: of two classes the second, of several labels the chosen one.

    With more classes, the label is that the prediction is correct, and the probability is its confidence.
    """

    BINDING_GROUP_TITLE = "Scores"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Lower", id="scores.lower", tooltip="Lower the threshold"),
        Binding("right", "move(1)", "Higher", id="scores.higher", tooltip="Raise the threshold"),
        Binding("shift+left", "move(-10)", id="scores.much-lower", tooltip="Lower the threshold tenfold"),
        Binding("shift+right", "move(10)", id="scores.much-higher", tooltip="Raise the threshold tenfold"),
        Binding("B", "best", "Best F1", id="scores.best", tooltip="Set the threshold with the highest F1"),
        Binding("full_stop", "label(1)", "Next label", id="scores.next-label", tooltip="Show the next label"),
        Binding("comma", "label(-1)", id="scores.previous-label", tooltip="Show the previous label"),
    ]

    report: reactive[OutputReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    threshold: reactive[float] = reactive(0.5, repaint=False)
    """Examples with at least this probability are predicted to have the label."""

    label: reactive[int] = reactive(0, repaint=False)
    """Index of the label."""

    def watch_report(self) -> None:
        self.refresh_bindings()
        self.rebuild()

    watch_threshold = watch_label = watch_report

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the next label only of several, and the best F1 only of a label."""
        if action == "label":
            return len(scored_labels(self.report)) > 1
        return action != "best" or not self._is_confidence

    def action_move(self, bins: int) -> None:
        if scored := self._scored:
            count = len(scored.positives)
            self.threshold = min(max(round(self.threshold * count) + bins, 0), count) / count

    def action_best(self) -> None:
        if scored := self._scored:
            self.threshold = best_threshold(scored)

    def action_label(self, labels: int) -> None:
        if count := len(scored_labels(self.report)):
            self.label = (self.label + labels) % count

    @property
    def _scored(self) -> ScoredLabel | None:
        found = scored_labels(self.report)
        return found[min(self.label, len(found) - 1)] if found else None

    @property
    def _is_confidence(self) -> bool:
        return isinstance(self.report, ClassificationReport) and self.report.scores is None

    def headings(self, width: int) -> Sequence[Strip]:
        """The label, and the figures at the threshold."""
        scored = self._scored
        if scored is None:
            return ()
        now = figures_at(scored, self.threshold)
        spans: list[TextSpan] = [(f"threshold {self.threshold:.3f}", "head"), (": ", "")]
        if self._is_confidence:
            share = percent(now.predicted / now.examples) if now.predicted else "none"
            spans += [
                (f"accuracy {numbers.metric(now.precision)}", "title"),
                (f"  {share} of {now.examples:,} predictions are as confident", ""),
            ]
        else:
            words = f"precision {_figure(now.precision)}  recall {_figure(now.recall)}  F1 {_figure(now.f1)}"
            spans += [(words, "title"), (f"  accuracy {_figure(now.accuracy)}", "")]
        what = scored.name if self._is_confidence else f"label {shorten(scored.name, 30)}"
        if (labels := len(scored_labels(self.report))) > 1:
            what += f" ({min(self.label, labels - 1) + 1} of {labels}, . next)"
        about = f"{what}: {numbers.count(now.positives)} of {numbers.counted(now.examples, 'example')}"
        return [
            self.line((about, "title"), (f" after step {self.step:,}", "faint")),
            self.line(*spans),
        ]

    def plots(self) -> Sequence[Plot]:
        """The plots of the label; none if all its probabilities are NaN."""
        scored = self._scored
        if scored is None or not (scored.positives.any() or scored.negatives.any()):
            return ()
        at, now = scored.curves, figures_at(scored, self.threshold)
        if self._is_confidence:
            covered = (at.true_positive_rate * now.positives + at.false_positive_rate * now.negatives) / now.examples
            here = PlotSeries(np.array([now.predicted / now.examples]), np.array([now.precision]), "mark", "warning")
            line = PlotSeries(np.nan_to_num(covered), at.precision)
            third = Plot("Accuracy of confident predictions", (line, here), "", _SHARE, None, "share kept", "accuracy")
            return self._histogram(scored, "wrong", "correct"), self._calibration(scored), third
        here = PlotSeries(np.array([now.false_positive_rate]), np.array([now.recall]), "mark", "warning")
        roc = Plot(
            "ROC",
            (_DIAGONAL, PlotSeries(at.false_positive_rate, at.true_positive_rate), here),
            f"AUC {numbers.metric(at.roc_auc)}",
            _SHARE,
            _SHARE,
            "false positive rate",
            "true positive rate",
        )
        here = PlotSeries(np.array([now.recall]), np.array([now.precision]), "mark", "warning")
        precision = Plot(
            "Precision-recall",
            (PlotSeries(at.true_positive_rate, at.precision), here),
            f"AP {numbers.metric(at.average_precision)}",
            _SHARE,
            _SHARE,
            "recall",
            "precision",
        )
        return self._histogram(scored, "negative", "positive"), roc, precision, self._calibration(scored)

    def _histogram(self, scored: ScoredLabel, negative: str, positive: str) -> Plot:
        edges = np.linspace(0.0, 1.0, _BARS + 1)
        below, above = (
            counts.reshape(_BARS, -1).sum(1).astype(np.float64) for counts in (scored.negatives, scored.positives)
        )
        bars = (
            PlotSeries(edges, below, "bars", "warning", negative),
            PlotSeries(edges, above, "bars", "primary", positive),
        )
        rule = PlotSeries(np.array([self.threshold]), np.array([]), "rule", "axis")
        return Plot("Scores", (*bars, rule), "", _SHARE, None, "probability", "examples", has_tints=self.has_colours)

    def _calibration(self, scored: ScoredLabel) -> Plot:
        found = calibration(scored.positives, scored.negatives)
        known = ~np.isnan(found.probability)
        line = PlotSeries(found.probability[known], found.frequency[known])
        marks = PlotSeries(line.x, line.y, "mark")
        error = f"error {numbers.metric(found.error)}"
        return Plot("Calibration", (_DIAGONAL, line, marks), error, _SHARE, _SHARE, "probability", "share of positives")


def scored_labels(report: OutputReport | None) -> tuple[ScoredLabel, ...]:
    """The labels of a report whose probabilities were stored."""
    if isinstance(report, MultiLabelReport):
        scores = report.scores
        return tuple(map(ScoredLabel, report.names, scores.positives, scores.negatives))
    if isinstance(report, ClassificationReport):
        if report.scores is not None:
            name = report.names[1] if len(report.names) > 1 else "1"
            return (ScoredLabel(name, report.scores.positives[0], report.scores.negatives[0]),)
        if report.confidence is not None:
            found = report.confidence
            return (ScoredLabel("correct predictions", found.positives[0], found.negatives[0]),)
    return ()


def _figure(value: float) -> str:
    return "-" if np.isnan(value) else numbers.metric(value)


def figures_at(scored: ScoredLabel, threshold: float) -> _ThresholdFigures:
    """Figures at a threshold, which is rounded to the nearest edge of a bin."""
    first = round(threshold * len(scored.positives))
    found, wrong = int(scored.positives[first:].sum()), int(scored.negatives[first:].sum())
    positives, negatives = int(scored.positives.sum()), int(scored.negatives.sum())
    return _ThresholdFigures(
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
