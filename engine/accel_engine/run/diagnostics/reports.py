"""What a validation found, in a form that fits the task: one report per output of the model.

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
"""Numbers of an output whose points are stored."""

MAX_REGRESSION_POINTS = 2000
"""Points of each."""

RESIDUAL_BINS = 60
"""Bins of a histogram of residuals or errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A validation example with the model's output for it. A view is ``None`` where there is nothing to show.

    Attributes:
        row: Its index in the validation data, from 0.
        loss: Its loss; NaN if the model's output is not finite.
        input: The example.
        target: What the output is compared with.
        output: The model's output, in the same form.
    """

    row: Count
    loss: Number
    input: Tagged[View] | None = None
    target: Tagged[View] | None = None
    output: Tagged[View] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePrediction(Example):
    """An example of a classifier. It has no views of target and output.

    Attributes:
        label: Index of its true class; ``None`` if its label is negative, as of examples without a class.
        predicted: Index of the predicted class.
        confidence: Probability of the predicted class.
        true_class_probability: Probability of the true class.
    """

    label: Count | None
    predicted: Count
    confidence: Number
    true_class_probability: Number

    @property
    def correct(self) -> bool:
        """Whether the predicted class is the true one."""
        return self.predicted == self.label


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Probabilities of labels, as histograms from which curves are computed.

    Attributes:
        positives: Number of examples that have the label, int64 ``[labels, SCORE_BINS]``, by the probability that the
            model gives it. Bin ``k`` is from ``k / SCORE_BINS`` to ``(k + 1) / SCORE_BINS``.
        negatives: The same for examples that do not have it.
    """

    positives: npt.NDArray[np.int64]
    negatives: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What all reports have.

    Attributes:
        output: Name of the model's output; empty if there is only one.
        examples: Number of examples.
        worst: Examples with the highest loss, highest first; those whose loss is NaN before them.
        random: Some other examples, in the order of the data.
        reason: Why something is not stored, as a sentence without a full stop.
    """

    output: Text = ""
    examples: Count = 0
    worst: tuple[Example, ...] = ()
    random: tuple[Example, ...] = ()
    reason: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassificationReport(Report):
    """A class for each example.

    Attributes:
        names: Class names.
        counts: Confusion matrix with true classes as rows and predicted ones as columns, int64
            ``[classes, classes]``; ``None`` with more than :data:`MAX_CLASSES` classes.
        scores: Of two classes, the probabilities of the second, with one label; ``None`` with more classes.
        confidence: Confidence of the predictions, with one label: ``positives`` are the correct ones.
        worst: Wrong predictions first, those with the lowest probability of the true class before others.
    """

    names: tuple[Text, ...] = ()
    counts: npt.NDArray[np.int64] | None = None
    scores: Scores | None = None
    confidence: Scores | None = None
    worst: tuple[SamplePrediction, ...] = ()
    random: tuple[SamplePrediction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MultiLabelReport(Report):
    """Any number of labels for each example, whose views of target and output are ``Labels``.

    Attributes:
        names: Names of the labels.
        counts: For each label, int64 ``[labels, 2, 2]``: first index 1 if an example has it, second index 1 if the
            model predicts it, with a probability above 0.5; for the first :data:`MAX_CLASSES` labels.
        scores: Probabilities of the first :data:`MAX_SCORED_LABELS` labels.
    """

    names: tuple[Text, ...] = ()
    counts: npt.NDArray[np.int64]
    scores: Scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionReport(Report):
    """One or more numbers for each example, whose views of target and output are ``Row``.

    Attributes:
        names: Names of the first :data:`MAX_UNITS` numbers of the output.
        units: Numbers of the output.
        mae: Mean absolute error of each of the first numbers, float64 ``[len(names)]``.
        rmse: Root of the mean squared error of each.
        r2: Coefficient of determination of each; NaN where all true values are equal.
        mean_mae: Mean absolute error over all numbers.
        mean_rmse: Root of the mean squared error over all numbers.
        points: True and predicted values of random examples, float32 ``[len(names), points, 2]``, with at most
            :data:`MAX_REGRESSION_POINTS` points.
        residuals: Number of examples by predicted minus true value, int64 ``[len(names), RESIDUAL_BINS]``.
        residual_edges: Edges of the bins, float32 ``[len(names), RESIDUAL_BINS + 1]``.
        not_finite: Examples with an output or target that is NaN or infinite, which the figures leave out.
    """

    names: tuple[Text, ...]
    units: Count
    mae: npt.NDArray[np.float64]
    rmse: npt.NDArray[np.float64]
    r2: npt.NDArray[np.float64]
    mean_mae: Number
    mean_rmse: Number
    points: npt.NDArray[np.float32]
    residuals: npt.NDArray[np.int64]
    residual_edges: npt.NDArray[np.float32]
    not_finite: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentationReport(Report):
    """A class for each pixel. Views of inputs are ``Image``, those of target and output ``Mask``.

    Attributes:
        names: Class names.
        counts: Confusion matrix of the pixels, true classes as rows, int64 ``[classes, classes]``; ``None`` with more
            than :data:`MAX_PIXEL_CLASSES` classes.
        ignored: Pixels without a true class, for example 255 where masks have fewer classes.
    """

    names: tuple[Text, ...] = ()
    counts: npt.NDArray[np.int64] | None = None
    ignored: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReconstructionReport(Report):
    """The input itself, or another image or vector. All three views have the same form, or ``target`` is ``None``.

    Attributes:
        mae: Mean absolute error over all values.
        rmse: Root of the mean squared error over all values.
        errors: Number of examples by their loss, int64 ``[RESIDUAL_BINS]``.
        error_edges: Edges of the bins, float32 ``[RESIDUAL_BINS + 1]``.
        same_target: Whether the target is the input itself; then examples have no target.
        not_finite: Examples whose loss is NaN or infinite.
    """

    mae: Number
    rmse: Number
    errors: npt.NDArray[np.int64]
    error_edges: npt.NDArray[np.float32]
    same_target: bool
    not_finite: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceReport(Report):
    """A class for each token; the next token for a language model. All views are ``Tokens``, or inputs ``Text``.

    Attributes:
        names: Class names, or the vocabulary; empty if unknown.
        tokens: Tokens that count.
        accuracy: Share of correct tokens.
        perplexity: The exponential of the mean loss of a token in nats.
        counts: Confusion matrix of the tokens, true classes as rows, int64 ``[classes, classes]``; ``None`` for a
            language model, or with more than :data:`MAX_PIXEL_CLASSES` classes.
        prompt: Start of the generated text.
        generated: Text written by the model after the prompt; empty if it cannot generate.
    """

    names: tuple[Text, ...] = ()
    tokens: Count
    accuracy: Number
    perplexity: Number
    counts: npt.NDArray[np.int64] | None = None
    prompt: Text = ""
    generated: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForecastReport(Report):
    """Next values of time series. All views are ``Curve``, in original units where the data gives them.

    ``target`` and ``output`` begin one step after the end of ``input``. The series of ``input`` with the same name as
    one of ``target`` is its past; without names, series of the same index.

    Attributes:
        names: Names of the series that are forecast, at most :data:`MAX_UNITS`.
        mae: Mean absolute error at each step ahead, float64 ``[len(names), horizon]``, for at most 512 steps.
        baseline: The same of a forecast that repeats the last known value; ``None`` if that is not in the input.
        mean_mae: Mean absolute error over all values.
        mean_rmse: Root of the mean squared error over all values.
        not_finite: Examples whose loss is NaN or infinite.
    """

    names: tuple[Text, ...]
    mae: npt.NDArray[np.float64]
    baseline: npt.NDArray[np.float64] | None = None
    mean_mae: Number
    mean_rmse: Number
    not_finite: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomReport(Report):
    """An output that cannot be interpreted; ``reason`` says why.

    Attributes:
        shapes: Name and spec of each output, such as ``embedding`` and ``float32 64``.
    """

    shapes: tuple[tuple[Text, Text], ...] = ()


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
    """The result of one validation.

    Attributes:
        outputs: A report for each output of the model.
    """

    outputs: tuple[Tagged[OutputReport], ...] = field(default=())
