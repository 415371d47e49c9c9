"""The values for rules on poor models: the loss of a run's latest part, its validations, and results of chance."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_engine.advice.recorded import EMPTY, Floats, Recorded, RecordedSeries
from accel_engine.events import EpochEnded, LearningRateChanged, ModelBuilt, PartStarted, Validated
from accel_engine.plan.monitor import is_better_lower
from accel_engine.plan.task_choices import LOSS_ALIASES, LOSSES
from accel_engine.run.diagnostics import ClassificationReport, DataProfile, OutputReport, RegressionReport
from accel_engine.run.store.series_names import LEARNING_RATE, is_loss

STEP_LOSSES = ("loss", "mean_loss")
"""Series with the loss of single steps, the best first."""

_REWARDS = ("reward", "return", "episode")
"""Words in names of series of reinforcement learning, whose loss need not fall."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How a run has learned."""

    recorded: Recorded
    """The run."""
    loss: RecordedSeries
    """The series of its loss; empty if it has none that should fall."""
    loss_name: str
    """Its name."""
    first: int
    """The first step of the latest part."""
    validations: tuple[Validated, ...]
    """The validations of the latest part."""
    epochs: tuple[EpochEnded, ...]
    """The epochs of the latest part."""

    @property
    def opening(self) -> RecordedSeries:
        """The loss of the first steps, one by one at the beginning of the run; else all of it."""
        return self.loss if self.first else self.recorded.opening.get(self.loss_name, self.loss)

    @property
    def first_loss(self) -> float:
        """The loss of the first step, or the mean of the first bucket."""
        return float(self.opening.mean[0])

    @property
    def profile(self) -> DataProfile | None:
        """The profile of the data."""
        return self.recorded.diagnostics.profile

    @property
    def settings(self) -> Mapping[str, Any]:
        """The fields of the plan, also of one that this machine cannot load; empty for scripts and imports."""
        return self.recorded.info.plan_values if self.recorded.info.has_engine else {}

    @property
    def is_fresh(self) -> bool:
        """Whether the weights were random at the first step, as far as is known."""
        return not self.settings.get("initial_weights") and not self.settings.get("freeze")

    @property
    def layer_kinds(self) -> tuple[str, ...]:
        """Classes of the model's layers; empty if unknown."""
        table = self.recorded.diagnostics.layers
        return tuple(layer.kind for layer in table.layers) if table else ()

    @property
    def stop(self) -> int:
        """The step after the last one."""
        return int(self.loss.first[-1]) + self.loss.width if len(self.loss) else self.first

    @property
    def finite(self) -> bool:
        """Whether the loss has a finite value."""
        return len(self.loss) > 0

    @property
    def last_loss(self) -> float:
        """The median of the last losses."""
        return start_and_end(self.loss)[1]

    def of(self, name: str) -> RecordedSeries:
        """A series in this part by name; an empty one if it was not recorded."""
        return self.recorded.of(name).between(self.first, self.stop)

    @property
    def built(self) -> ModelBuilt | None:
        """The model and the batch."""
        return self.recorded.built

    @property
    def output_units(self) -> int | None:
        """Numbers of the model's single output, where it is a vector; ``None`` if unknown."""
        found = re.fullmatch(r"\w+ (\d+)", self.built.outputs) if self.built else None
        return int(found.group(1)) if found else None

    @property
    def classes(self) -> int | None:
        """Number of classes of a classification; ``None`` for anything else."""
        built, units = self.built, self.output_units
        if built is None or (not built.loss and self.recorded.info.kind != "training"):
            return self._classes_by_chance
        if built.task not in ("", "classification"):
            return None
        if built.task and built.classes:
            return built.classes
        if "categorical_crossentropy" in built.loss:
            return units if units and units > 1 else None
        return 2 if "binary_crossentropy" in built.loss and units == 1 else None

    @property
    def _classes_by_chance(self) -> int | None:
        """The number of classes at which the first losses and accuracies are both as by chance, if there is one."""
        losses, accuracies = self.recorded.of("loss").mean[:20], self.recorded.of("accuracy").mean[:20]
        if len(losses) < 10 or len(accuracies) < 10 or not 0.5 < np.median(losses) < 7:
            return None
        classes = round(math.exp(float(np.median(losses))))
        by_loss = abs(float(np.median(losses)) - math.log(classes)) < 0.1
        return classes if by_loss and abs(float(accuracies.mean()) * classes - 1) < 0.4 else None

    @property
    def has_known_loss(self) -> bool:
        """Whether the loss is one of Keras', which compares outputs with targets and adds nothing."""
        return self.built is not None and self.built.loss in {*LOSSES, *LOSS_ALIASES}

    @property
    def class_shares(self) -> Floats | None:
        """The share of each class in the training data, or else in validation; ``None`` if unknown."""
        profile, report = self.profile, self.classification
        counts = np.array(profile.classes if profile and profile.classes else (), np.float64)
        if not counts.sum() and report is not None and report.counts is not None:
            counts = report.counts.sum(axis=1).astype(np.float64)
        return counts / counts.sum() if counts.sum() else None

    @property
    def chance_loss(self) -> float | None:
        """The loss of a model that knows only how often each target occurs; ``None`` if unknown.

        The entropy of the classes for a crossentropy, the variance of the targets for a squared error.
        """
        built, classes = self.built, self.classes
        if built is None or not built.loss:
            return math.log(classes) if classes else None
        if "crossentropy" in built.loss and classes:
            shares = self.class_shares
            if shares is None or len(shares) != classes or self.settings.get("class_weight"):
                return math.log(classes)
            known = shares[shares > 0]
            return float(-np.sum(known * np.log(known)))
        deviation = self.profile.target_deviation if self.profile else None
        if deviation and built.loss in ("mean_squared_error", "mse") and self.output_units == 1:
            return deviation**2
        return None

    @property
    def chance_accuracy(self) -> float | None:
        """The accuracy of always guessing the commonest class; ``None`` if unknown."""
        classes, shares = self.classes, self.class_shares
        if classes is None:
            return None
        return float(shares.max()) if shares is not None else 1 / classes

    @property
    def classification(self) -> ClassificationReport | None:
        """The report of a classifier's only output."""
        report = self._only_report
        return report if isinstance(report, ClassificationReport) else None

    @property
    def regression(self) -> RegressionReport | None:
        """The report of the only output of a regression."""
        report = self._only_report
        return report if isinstance(report, RegressionReport) else None

    @property
    def _only_report(self) -> OutputReport | None:
        report = self.recorded.diagnostics.validation
        return report.outputs[0] if report and len(report.outputs) == 1 else None

    @property
    def accuracy_name(self) -> str:
        """The series with the accuracy; empty if there is none."""
        names = [name for name in self.recorded.series if name == "accuracy" or name.endswith("_accuracy")]
        return "accuracy" if "accuracy" in names else names[0] if len(names) == 1 else ""

    @property
    def highest_rate(self) -> float | None:
        """The highest learning rate of this part; ``None`` if unknown."""
        series = self.recorded.of(LEARNING_RATE).between(self.first, self.recorded.steps + 1)
        if len(series):
            return float(series.high.max())
        changed = [each for each in self.recorded.all(LearningRateChanged) if each.step >= self.first]
        return max((each.learning_rate for each in changed), default=None)

    @property
    def accuracy_rises(self) -> bool:
        """Whether the accuracy of training has risen by 0.05 or more in the second half."""
        means = block_means(self.of(self.accuracy_name), 8)
        return len(means) == 8 and bool(means[6:].mean() - means[3:5].mean() > 0.05)

    def is_settled(self, limit: float = 0.1) -> bool:
        """Whether the loss has fallen by less than a share of itself over the last quarter of the steps."""
        means = block_means(self.loss, 8)
        if len(means) < 8:
            return False
        before, now = means[4:6].mean(), means[6:].mean()
        return bool(before - now < limit * abs(now))

    def monitored(self) -> Iterator[tuple[str, bool]]:
        """Metrics of validation with whether lower is better: the one that counts first, then the loss."""
        wanted = (self.built.monitor if self.built else "").removeprefix("validation_")
        names = [name for name in (wanted, self.accuracy_name, "loss") if name]
        for name in dict.fromkeys(names):
            mode = self.settings.get("monitor_mode") if name == wanted else "auto"
            lower = is_better_lower(name, mode)
            if lower is not None and len(self.validation(name)[0]):
                yield name, lower

    def validation(self, metric: str) -> tuple[np.ndarray, Floats]:
        """The steps and finite values of a metric of validation in this part, ``[validations]`` both."""
        steps, values = self.recorded.validation(metric)
        inside = steps >= self.first
        return steps[inside], values[inside]


def learning_of(recorded: Recorded) -> Learning:
    """Collect the records of a run's latest part.

    Several losses, as a GAN has, and a loss beside rewards need not fall: such a run has no loss here.
    """
    parts = recorded.all(PartStarted)
    first = parts[-1].step if parts else 0
    name = _loss_name(recorded)
    loss = recorded.of(name).between(first, recorded.steps + 1) if name and not _has_rivals(recorded) else EMPTY
    return Learning(
        recorded,
        loss,
        name,
        first,
        tuple(each for each in recorded.validations if each.step > first or not parts),
        tuple(each for each in recorded.epochs if each.step > first or not parts),
    )


def _loss_name(recorded: Recorded) -> str:
    """The series with the loss of steps, the first with finite values; empty if there is none."""
    names = [name for name in STEP_LOSSES if name in recorded.series]
    return next((name for name in names if len(recorded.of(name))), names[0] if names else "")


def _has_rivals(recorded: Recorded) -> bool:
    """Whether losses compete, or a reward is what counts."""
    names = [name for name in recorded.series if name not in STEP_LOSSES]
    if any(word in name.split("_") for name in names for word in _REWARDS):
        return True
    custom = recorded.built is None or recorded.built.task in ("", "custom")
    return custom and sum(is_loss(name) for name in names) > 1


def block_means(series: RecordedSeries, count: int) -> Floats:
    """Means of equal parts of a series, ``[count]`` or fewer."""
    parts = np.array_split(series.mean, min(count, len(series))) if len(series) else []
    return np.array([part.mean() for part in parts])


def curve_noise(values: Floats) -> float:
    """A robust standard deviation of the noise of a curve: of the differences of neighbours."""
    if len(values) < 3:
        return 0.0
    steps = np.diff(values)
    return float(1.4826 * np.median(np.abs(steps - np.median(steps))) / math.sqrt(2))


def start_and_end(series: RecordedSeries) -> tuple[float, float]:
    """Medians of the first and of the last tenth of the steps."""
    count = max(1, min(len(series) // 10, 50))
    return float(np.median(series.mean[:count])), float(np.median(series.mean[-count:]))
