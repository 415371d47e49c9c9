"""Reports of a validation, in a form that fits the task: one per output of the model.

Figures that can be computed from these, such as precision or a ROC curve, are not stored; see :mod:`.figures`.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.json_values import Count, Number, Text
from accel_engine.run.diagnostics.views import Tagged, View

SCORE_BINS = 200
"""Bins of a histogram of probabilities, which are equally wide."""

MAX_SCORED_LABELS = 50
"""Labels whose histograms of probabilities are stored."""

MAX_CLASSES = 1000
"""Classes up to which a confusion matrix of examples is stored."""

MAX_PIXEL_CLASSES = 256
"""Classes up to which a confusion matrix of pixels or tokens is stored."""

MAX_WORST = 64
"""Examples that are stored at most, with the highest loss first; of larger ones such as curves, 24."""

MAX_UNITS = 8
"""Numbers of an output whose points are stored; series whose forecasts are reported."""

MAX_REGRESSION_POINTS = 2000
"""Points of each of these numbers."""

RESIDUAL_BINS = 60
"""Bins of a histogram of residuals or errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A validation example with the model's output for it. A view is ``None`` where there is nothing to show."""

    row: Count
    """Its index in the validation data, from 0."""
    loss: Number
    """Its loss; NaN if the model's output is not finite."""
    input: Tagged[View] | None = None
    """The example."""
    target: Tagged[View] | None = None
    """The target with which the output is compared."""
    output: Tagged[View] | None = None
    """The model's output, in the same form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePrediction(Example):
    """An example of a classifier. It has no views of target and output."""

    label: Count | None
    """Index of its true class; ``None`` if its label is negative, which means no class."""
    predicted: Count
    """Index of the predicted class."""
    confidence: Number
    """Probability of the predicted class."""
    true_class_probability: Number
    """Probability of the true class."""

    @property
    def is_correct(self) -> bool:
        """Whether the predicted class is the true one."""
        return self.predicted == self.label


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Probabilities of labels, as histograms from which curves are computed."""

    positives: npt.NDArray[np.int64]
    """Number of examples that have the label, int64 ``[labels, SCORE_BINS]``, by the probability that the model gives
    it. Bin ``k`` is from ``k / SCORE_BINS`` to ``(k + 1) / SCORE_BINS``."""
    negatives: npt.NDArray[np.int64]
    """The same for examples that do not have it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Base of all reports. None equals another one, so that a page also shows a later one with the same figures."""

    output: Text = ""
    """Name of the model's output; empty if there is only one."""
    examples: Count = 0
    """Number of examples."""
    worst: tuple[Example, ...] = ()
    """Examples with the highest loss, highest first; those whose loss is NaN before them."""
    random: tuple[Example, ...] = ()
    """Some other examples, in the order of the data."""
    reason: Text = ""
    """Why something is not stored, as a sentence without a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassificationReport(Report):
    """A class for each example."""

    names: tuple[Text, ...] = ()
    """Class names."""
    counts: npt.NDArray[np.int64] | None = None
    """Confusion matrix with true classes as rows and predicted ones as columns, int64 ``[classes, classes]``; ``None``
    with more than :data:`MAX_CLASSES` classes."""
    scores: Scores | None = None
    """Of two classes, the probabilities of the second, with one label; ``None`` with more classes."""
    confidence: Scores | None = None
    """Confidence of the predictions, with one label: ``positives`` are the correct ones."""
    worst: tuple[SamplePrediction, ...] = ()
    """Wrong predictions first, those with the lowest probability of the true class before others."""
    random: tuple[SamplePrediction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MultiLabelReport(Report):
    """Any number of labels for each example, whose views of target and output are ``Labels``."""

    names: tuple[Text, ...] = ()
    """Names of the labels."""
    counts: npt.NDArray[np.int64]
    """For each label, int64 ``[labels, 2, 2]``: first index 1 if an example has it, second index 1 if the model
    predicts it, with a probability above 0.5; for the first :data:`MAX_CLASSES` labels."""
    scores: Scores
    """Probabilities of the first :data:`MAX_SCORED_LABELS` labels."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionReport(Report):
    """One or more numbers for each example, whose views of target and output are ``Row``."""

    names: tuple[Text, ...]
    """Names of the first :data:`MAX_UNITS` numbers of the output."""
    units: Count
    """Numbers of the output."""
    mae: npt.NDArray[np.float64]
    """Mean absolute error of each of the first numbers, float64 ``[len(names)]``."""
    rmse: npt.NDArray[np.float64]
    """Root of the mean squared error of each."""
    r2: npt.NDArray[np.float64]
    """Coefficient of determination of each; NaN where all true values are equal."""
    mean_mae: Number
    """Mean absolute error over all numbers."""
    mean_rmse: Number
    """Root of the mean squared error over all numbers."""
    points: npt.NDArray[np.float32]
    """True and predicted values of random examples, float32 ``[len(names), points, 2]``, with at most
    :data:`MAX_REGRESSION_POINTS` points."""
    residuals: npt.NDArray[np.int64]
    """Number of examples by predicted minus true value, int64 ``[len(names), RESIDUAL_BINS]``."""
    residual_edges: npt.NDArray[np.float32]
    """Edges of the bins, float32 ``[len(names), RESIDUAL_BINS + 1]``."""
    not_finite: Count = 0
    """Examples with an output or target that is NaN or infinite, which the figures leave out."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentationReport(Report):
    """A class for each pixel. Views of inputs are ``Image``, of target and output ``Mask``."""

    names: tuple[Text, ...] = ()
    """Class names."""
    counts: npt.NDArray[np.int64] | None = None
    """Confusion matrix of the pixels, true classes as rows, int64 ``[classes, classes]``; ``None`` with more than
    :data:`MAX_PIXEL_CLASSES` classes."""
    ignored: Count = 0
    """Pixels without a true class, for example 255 where masks have fewer classes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReconstructionReport(Report):
    """The input itself, or another image or vector. All three views have the same form, or ``target`` is ``None``."""

    mae: Number
    """Mean absolute error over all values."""
    rmse: Number
    """Root of the mean squared error over all values."""
    errors: npt.NDArray[np.int64]
    """Number of examples by their loss, int64 ``[RESIDUAL_BINS]``."""
    error_edges: npt.NDArray[np.float32]
    """Edges of the bins, float32 ``[RESIDUAL_BINS + 1]``."""
    same_target: bool
    """Whether the target is the input itself; then examples have no target."""
    not_finite: Count = 0
    """Examples whose loss is NaN or infinite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceReport(Report):
    """A class for each token; the next token for a language model.

    All views are ``Tokens``, or inputs ``views.Text``.
    """

    names: tuple[Text, ...] = ()
    """Class names, or the vocabulary; empty if unknown."""
    tokens: Count
    """Tokens that count."""
    accuracy: Number
    """Share of correct tokens."""
    perplexity: Number
    """The exponential of the mean loss of a token in nats."""
    counts: npt.NDArray[np.int64] | None = None
    """Confusion matrix of the tokens, true classes as rows, int64 ``[classes, classes]``; ``None`` for a language
    model, or with more than :data:`MAX_PIXEL_CLASSES` classes."""
    prompt: Text = ""
    """Start of the generated text."""
    generated: Text = ""
    """Text written by the model after the prompt; empty if it cannot generate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForecastReport(Report):
    """Next values of time series. All views are ``Curve``, in original units where the data gives them.

    ``target`` and ``output`` begin one step after the end of ``input``. The series of ``input`` with the same name as
    one of ``target`` is its past; without names, series of the same index.
    """

    names: tuple[Text, ...]
    """Names of the series that are forecast, at most :data:`MAX_UNITS`."""
    mae: npt.NDArray[np.float64]
    """Mean absolute error at each step ahead, float64 ``[len(names), horizon]``, for the first
    :data:`.views.MAX_POINTS` steps."""
    baseline: npt.NDArray[np.float64] | None = None
    """The same for a forecast that repeats the last known value; ``None`` if that is not in the input."""
    mean_mae: Number
    """Mean absolute error over all values."""
    mean_rmse: Number
    """Root of the mean squared error over all values."""
    not_finite: Count = 0
    """Examples whose loss is NaN or infinite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CustomReport(Report):
    """An output that cannot be interpreted; ``reason`` says why."""

    shapes: tuple[tuple[Text, Text], ...] = ()
    """Name and spec of each output, such as ``embedding`` and ``float32 64``."""


OutputReport: TypeAlias = (
    ClassificationReport
    | MultiLabelReport
    | RegressionReport
    | SegmentationReport
    | ReconstructionReport
    | SequenceReport
    | ForecastReport
    | CustomReport
)


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The result of one validation."""

    outputs: tuple[Tagged[OutputReport], ...] = field(default=())
    """A report for each output of the model."""
