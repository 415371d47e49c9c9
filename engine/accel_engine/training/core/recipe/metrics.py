"""The metrics that a plan names, for the task of its model."""

import math
from typing import Any, TypeAlias

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.baseline import mean_target
from accel_engine.data.dataset import Dataset
from accel_engine.data.standardization_model import dtype_of_units, shape_in_units
from accel_engine.data.structure import ArraySpec, Structure, flatten
from accel_engine.errors import PlanError
from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.keras_support.model_structure import metrics_of
from accel_engine.plan import Plan
from accel_engine.plan.fit_checks import wrong_metrics, wrong_top_k
from accel_engine.plan.task_choices import ALWAYS_MEASURED, TOP_K
from accel_engine.private_names.keras_names import mask_of, set_mask
from accel_engine.training.core.task import Task, probabilities_of

Numbers: TypeAlias = npt.NDArray[np.float32]

_NUMERIC = {
    "mean_absolute_error": keras.metrics.MeanAbsoluteError,
    "mean_squared_error": keras.metrics.MeanSquaredError,
    "root_mean_squared_error": keras.metrics.RootMeanSquaredError,
    "mean_absolute_percentage_error": keras.metrics.MeanAbsolutePercentageError,
    "cosine_similarity": keras.metrics.CosineSimilarity,
}

_OF_DIFFERENCES = (
    "mean_absolute_error",
    "mean_squared_error",
    "RootMeanSquaredError",
    "R2Score",
    "huber",
    "log_cosh",
)
"""Keras' functions, and classes without one, whose values do not change if outputs and targets move together."""

_OF_A_CLASS = ("auc", "precision", "recall", "f1_score")
"""Metrics of one class, if there are two."""


class _OfRows(keras.metrics.Metric):  # type: ignore[misc]  # Keras has no types
    """A metric whose examples are rows of values."""

    def __init__(self, inner: keras.metrics.Metric) -> None:
        super().__init__(name=inner.name)
        self._inner = inner

    def result(self) -> Any:
        """The inner metric's result."""
        return self._inner.result()


class _OfNumbers(_OfRows):
    """A metric of numbers in the unit of the targets.

    Args:
        inner: The metric; it takes arrays ``[examples, values]``.
        scale: The factor of outputs and targets, ``[values]`` or one for all.
        offset: Added then.
    """

    def __init__(
        self, inner: keras.metrics.Metric, scale: Numbers | float = 1.0, offset: Numbers | float = 0.0
    ) -> None:
        super().__init__(inner)
        self._scale, self._offset = scale, offset

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch."""
        width = y_pred.shape[-1] if y_pred.shape.rank > 1 else 1
        rows = [tf.reshape(tf.cast(each, tf.float32), [-1, width]) for each in (y_true, y_pred)]
        self._inner.update_state(*(each * self._scale + self._offset for each in rows))


class _OfClasses(_OfRows):
    """A metric of the probabilities of classes, for which labels are encoded as vectors.

    Args:
        inner: The metric; it takes arrays ``[examples, classes]``, or ``[examples, 1]`` for a single output and with
            ``second_only``.
        task: How labels and outputs are encoded.
        classes: Number of outputs.
        second_only: Whether only the second of the classes is measured.
    """

    def __init__(self, inner: keras.metrics.Metric, task: Task, classes: int, *, second_only: bool = False) -> None:
        super().__init__(inner)
        self._task, self._classes = task, classes
        self._measured = slice(1, 2) if second_only else slice(None)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch."""
        task, classes = self._task, self._classes
        if task.binary:
            shown = tf.sigmoid(tf.cast(y_pred, tf.float32)) if task.logits else tf.cast(y_pred, tf.float32)
        else:
            shown = probabilities_of(y_pred, task)
        if task.one_hot or task.name == "multi-label" or task.binary:
            labels = tf.cast(y_true, tf.float32)
        else:
            labels = tf.one_hot(tf.cast(tf.reshape(y_true, [-1]), tf.int32), classes)
        self._inner.update_state(*(tf.reshape(each, [-1, classes])[:, self._measured] for each in (labels, shown)))


def plan_metrics(
    plan: Plan, task: Task, outputs: Structure, dataset: Dataset, measured: tuple[keras.Metric, ...]
) -> tuple[Any, ...]:
    """The metrics of a plan, besides those that are measured anyway.

    Of two classes, precision, recall, AUC and F1 are of the second one, whatever the number of the outputs.
    Of more classes, precision and recall count each class of each example, as Keras does; AUC and F1 are means over
    classes.

    Args:
        plan: The plan.
        task: The model's task.
        outputs: The specs of its outputs.
        dataset: The data.
        measured: The metrics that are measured anyway.

    Raises:
        PlanError: A metric does not fit the task.
    """
    leaves = flatten(outputs) if outputs is not None else []
    if wrong := wrong_metrics(plan, task.name):
        raise PlanError("metrics", plan.metrics, *wrong)
    if plan.metrics and len(leaves) != 1:
        raise PlanError("metrics", plan.metrics, "the model has several outputs: compile it with their metrics")
    known = {metric.name for metric in measured}
    return tuple(_make(name, plan, task, leaves[0], dataset) for name in plan.metrics if name not in known)


def regression_metrics(model: keras.Model, task: Task, outputs: Structure, dataset: Dataset) -> tuple[Any, ...]:
    """The metrics of a regression that are measured without being asked; none for other tasks.

    Args:
        model: Compiled; its own metrics of these names stay as they are.
        task: Its task.
        outputs: The specs of its outputs.
        dataset: The data.
    """
    leaves = flatten(outputs) if outputs is not None else []
    if len(leaves) != 1 or not is_regression(task, leaves[0], dataset):
        return ()
    own = {metric.name for metric in metrics_of(model)}
    return tuple(_of_numbers(name, dataset) for name in ALWAYS_MEASURED[task.name] if name not in own)


def is_regression(task: Task, output: Any, dataset: Dataset) -> bool:
    """Whether each number of an output is compared with one number of the targets."""
    target = dataset.spec.targets
    if task.name != "regression" or not isinstance(target, ArraySpec) or target.dtype == "string":
        return False
    sides = (*output.shape[1:],), target.shape
    values = [math.prod(side for side in each if side is not None) for each in sides]
    return not any(None in each for each in sides) and values[0] == values[1]


def _of_numbers(name: str, dataset: Dataset) -> keras.Metric:
    """A metric of numbers in the unit of the targets."""
    units, mean = dataset.target_scaling, mean_target(dataset)
    if name == "r2_score":  # the same in every unit; numbers near their mean keep their digits in its sums
        centre = np.zeros(1) if mean is None else -mean
        return _OfNumbers(keras.metrics.R2Score(name=name), offset=centre.astype(np.float32))
    metric = _NUMERIC[name]()
    if units is None:
        return _OfNumbers(metric)
    # An error does not depend on the mean, which would cost it digits.
    offset = np.zeros(1) if name.endswith(("absolute_error", "squared_error")) else units.mean
    return _OfNumbers(metric, units.scale.astype(np.float32), offset.astype(np.float32))


def measure_in_units(model: keras.Model, outputs: Structure, dataset: Dataset) -> list[str]:
    """Let the metrics that a model was compiled with get outputs and targets in the unit of the targets.

    Args:
        model: Compiled; its metrics are built.
        outputs: The specs of its outputs.
        dataset: The data.

    Returns:
        A note on metrics that get differences from the mean, as float32 would lose the digits of the targets.
    """
    units, leaves = dataset.target_scaling, flatten(outputs) if outputs is not None else []
    if units is None or len(leaves) != 1:
        return []
    if shape_in_units(leaves[0].shape[1:], units, dataset.spec.targets.shape) != tuple(leaves[0].shape[1:]):
        return []
    is_precise, centred = dtype_of_units(units) == "float64", list[str]()
    for metric in (each for each in metrics_of(model) if type(each) is not keras.metrics.Mean):
        function = getattr(metric, "_fn", type(metric))
        is_known = is_keras_defined(function)
        of_differences = is_known and function.__name__ in _OF_DIFFERENCES
        if is_precise and not is_known:
            centred.append(metric.name)
        offset = np.zeros(1) if of_differences or (is_precise and not is_known) else units.mean
        _restore_before(metric, units.scale.astype(np.float32), offset.astype(np.float32))
    if not centred:
        return []
    return [f"{', '.join(centred)}: of differences from the mean of the targets, whose digits float32 would lose"]


def _restore_before(metric: keras.metrics.Metric, scale: Numbers, offset: Numbers) -> None:
    """Let a metric get ``scale`` times its outputs and targets, plus ``offset``."""
    update = metric.update_state

    def restored(values: Any) -> Any:
        mask, found = mask_of(values), tf.cast(values, tf.float32) * scale + offset
        if mask is not None:
            set_mask(found, mask)
        return found

    def update_restored(y_true: Any, y_pred: Any, *arguments: Any, **options: Any) -> Any:
        return update(restored(y_true), restored(y_pred), *arguments, **options)

    vars(metric)["update_state"] = update_restored  # not with setattr: what is saved of the metric stays the same


def second_class_note(plan: Plan, task: Task, outputs: Structure, dataset: Dataset) -> list[str]:
    """A note on the metrics of a plan that measure the second of two classes.

    Args:
        plan: The plan, whose metrics fit the task.
        task: The model's task.
        outputs: The specs of its outputs.
        dataset: The data.
    """
    names = [name for name in plan.metrics if name in _OF_A_CLASS]
    if not names or not _has_two_classes(task, flatten(outputs)[0], dataset):
        return []
    second = dataset.class_names[1] if dataset.class_names else "1"
    return [f"{', '.join(names)}: of the class {second}, the second of two"]


def _has_two_classes(task: Task, output: Any, dataset: Dataset) -> bool:
    """Whether there are two classes, however many outputs the model has."""
    return task.name != "multi-label" and (dataset.classes or max(_units(output), 2)) == 2


def _units(output: Any) -> int:
    return int(output.shape[-1] or 1)


def _make(name: str, plan: Plan, task: Task, output: Any, dataset: Dataset) -> keras.Metric:
    if name in _NUMERIC or name == "r2_score":
        return _of_numbers(name, dataset)
    units = _units(output)
    second_only = units > 1 and _has_two_classes(task, output, dataset)
    of_one = units == 1 or second_only
    match name:
        case "auc":
            metric = keras.metrics.AUC(name=name, multi_label=not of_one, num_labels=None if of_one else units)
            return _OfClasses(metric, task, units, second_only=second_only)
        case "precision" | "recall":
            kind = keras.metrics.Precision if name == "precision" else keras.metrics.Recall
            return _OfClasses(kind(name=name), task, units, second_only=second_only)
        case "f1_score":
            threshold = 0.5 if of_one or task.name == "multi-label" else None
            metric = keras.metrics.F1Score(average="macro", threshold=threshold, name=name)
            return _OfClasses(metric, task, units, second_only=second_only)
        case "mean_io_u" if task.binary:
            return _OfClasses(keras.metrics.BinaryIoU(name=name), task, units)
        case "mean_io_u":
            metric = keras.metrics.OneHotMeanIoU(num_classes=units, sparse_y_pred=False, name=name)
            return _OfClasses(metric, task, units)
        case "top_k_categorical_accuracy" if units > TOP_K:
            return _OfClasses(keras.metrics.TopKCategoricalAccuracy(TOP_K, name=name), task, units)
        case "top_k_categorical_accuracy":
            raise PlanError("metrics", plan.metrics, wrong_top_k(max(units, 2)))
    raise ValueError(f"no metric {name}")
