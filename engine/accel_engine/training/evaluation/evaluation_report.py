"""Builds the evaluation report of a validation: the confusion matrix and the samples with the highest loss."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split
from accel_engine.run.diagnostics import EvaluationReport, InputSpec, SamplePrediction
from accel_engine.training.core.assembly import Assembly

MAX_CLASSES = 1000
"""With more classes, no confusion matrix is saved."""

SAVED_SAMPLES = 64
"""Samples that are saved with their image."""

PREVIEW_SIZE = 64
"""Pixels of the longer side of a saved image."""

CUSTOM_STEP_REASON = "the model has a custom train_step, so its outputs cannot be interpreted"
"""Why there is no report for such a model."""

_EXAMPLES_READ = 256
"""Examples read to find the range of their values."""


class EvaluationReportBuilder:
    """Collects a model's predictions for the validation examples.

    Args:
        input_spec: The model's input.
        split: The validation examples.
        unavailable_reason: Why the model's predictions are unknown; empty if they are known.
    """

    def __init__(self, input_spec: InputSpec, split: Split, unavailable_reason: str = "") -> None:
        self._input_spec = input_spec
        self._unavailable_reason = unavailable_reason
        self._split = split
        self._predictions = np.zeros((0 if self._unavailable_reason else len(split), 3), np.float32)

    def add_batch(self, rows: npt.NDArray[np.int32], predictions: npt.NDArray[np.float32], *, repeated: bool) -> None:
        """Add the predictions of a step.

        Args:
            rows: Row numbers of the examples, ``[replicas, batch]``.
            predictions: As of :meth:`.label_encoding.LabelEncoding.predictions`, for each of the rows.
            repeated: Whether all replicas had the same examples.
        """
        replicas = slice(1) if repeated else slice(None)
        self._predictions[rows[replicas].reshape(-1)] = predictions.reshape(*rows.shape, 3)[replicas].reshape(-1, 3)

    def build(self) -> EvaluationReport:
        """Build the report, once the predictions of all examples are added."""
        names, split = self._input_spec.names, self._split
        if self._unavailable_reason:
            return EvaluationReport(len(split), names, reason=self._unavailable_reason)
        labels, predicted = split.y, self._predictions[:, 0].astype(np.int64)
        confidence, true_probability = np.nan_to_num(self._predictions[:, 1:]).T
        classes = max(len(names), int(predicted.max()) + 1)
        names += tuple(map(str, range(len(names), classes)))
        counts, reasons = None, []
        if classes > MAX_CLASSES:
            reasons.append(f"no confusion matrix: {classes:,} classes, of at most {MAX_CLASSES:,}")
        else:
            cells = np.bincount(labels.astype(np.int64) * classes + predicted, minlength=classes * classes)
            counts = cells.reshape(classes, classes).astype(np.int64)
        # Wrong predictions first, those with the lowest probability of the true class (the highest loss) before others.
        worst = np.lexsort((-confidence, true_probability, predicted == labels))[:SAVED_SAMPLES]
        images = None
        if self._input_spec.is_image:
            x = split.x[worst] if isinstance(split.x, np.ndarray) else split.x.take(worst)
            images = preview(x, self._input_spec)
        else:
            reasons.append(f"no images: {not_images_reason(self._input_spec.shape)}")
        samples = tuple(
            SamplePrediction(
                int(row), int(labels[row]), int(predicted[row]), float(confidence[row]), float(true_probability[row])
            )
            for row in worst
        )
        return EvaluationReport(len(split), names, counts, samples, images, "; ".join(reasons))


def unavailable_reason(assembly: Assembly) -> str:
    """Why the model's predictions are unknown; empty if they are known."""
    if assembly.has_custom_train_step:
        return CUSTOM_STEP_REASON
    if not assembly.is_classifier:
        return "the model is not a classifier: it does not have an output for each class"
    return ""


def input_spec_of(dataset: Dataset, scale: float) -> InputSpec:
    """The input of a model that is trained on the data.

    Args:
        dataset: The data.
        scale: The factor that raw examples are multiplied by.
    """
    x = dataset.train.x
    integers = bool(x.dtype == np.uint8)
    low, high = 0.0, float(dataset.value_range.largest or 0)
    if not high:
        rows = np.arange(min(_EXAMPLES_READ, len(dataset.train)))
        some = x[rows] if isinstance(x, np.ndarray) else x.take(rows)
        low, high = _range(float(some.min()), float(some.max()))
    return InputSpec(dataset.shape, dataset.class_names, scale, low, high, integers)


def _range(least: float, largest: float) -> tuple[float, float]:
    """The usual range of values that contains these, ``[0, 1]``, ``[-1, 1]`` or ``[0, 255]``; else these themselves."""
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)):
        if low <= least and largest <= high:
            return low, high
    return least, largest


def preview(x: npt.NDArray[Any], input_spec: InputSpec) -> npt.NDArray[np.uint8]:
    """Convert raw images to 8 bits, and shrink those larger than :data:`PREVIEW_SIZE`.

    Args:
        x: ``[images, height, width, channels]``.
        input_spec: The range of their values.

    Returns:
        uint8 ``[images, height, width, channels]``.
    """
    longest = max(x.shape[1:3])
    if longest > PREVIEW_SIZE:
        size = [max(1, side * PREVIEW_SIZE // longest) for side in x.shape[1:3]]
        with tf.device("CPU:0"):
            x = tf.image.resize(x, size, tf.image.ResizeMethod.AREA).numpy()
    if (input_spec.low, input_spec.high) != (0.0, 255.0):
        x = (x - input_spec.low) * (255 / max(input_spec.high - input_spec.low, 1e-9))
    pixels: npt.NDArray[np.uint8] = np.rint(np.clip(x, 0, 255)).astype(np.uint8)
    return pixels


def not_images_reason(shape: tuple[int, ...]) -> str:
    """Why examples of this shape are not images."""
    return f"examples of {'x'.join(map(str, shape)) or 'a single number'} are not images ({math.prod(shape):,} numbers)"
