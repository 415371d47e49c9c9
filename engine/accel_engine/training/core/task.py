"""Finds a run's task, from the compiled model and the data: how targets reach the loss, and what is measured.

A compiled model's targets go to its loss unchanged, as in ``fit``, but for class indices, which are encoded as the loss
needs them. A model that is not compiled gets the loss that fits its task.
"""

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import ArraySpec, Structure, flatten
from accel_engine.errors import ModelError, PlanError
from accel_engine.keras_support.losses import (
    Loss,
    MixedBinaryAccuracy,
    has_own_targets,
    is_of_keras,
    loss_kind,
    loss_name,
    output_activation,
    single_loss,
    takes_indices,
    takes_scores,
)
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.plan import Plan
from accel_engine.words import numbers

SEVERAL_OUTPUTS = "several outputs"
"""The task of a model with more than one output and a loss for each."""

UNCHANGED, ONE_HOT, SPARSE, COLUMN, INPUTS = "unchanged", "one-hot", "sparse", "column", "inputs"
"""How targets are encoded: not at all, as one-hot vectors, as class indices, as 0 or 1 for each output ``[batch, 1]``;
or the scaled inputs are the targets."""

_CLASSIFYING = ("crossentropy", "cross_entropy", "focal", "hinge")
_LABEL_RANKS = {"sequence": 2, "segmentation": 3}
BY_RANK = {2: "classification", 3: "sequence", 4: "segmentation"}
"""What probabilities over the last axis of an output predict, by its rank with the batch."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a run."""

    name: str
    """One of :data:`accel_engine.data.data_options.TASKS` but ``auto``, or :data:`SEVERAL_OUTPUTS`."""
    encoding: str = UNCHANGED
    """How targets are encoded."""
    classes: int = 0
    """Number of classes; 0 where outputs are not classes."""
    logits: bool = False
    """Whether a classifier's outputs are logits, or the scores of a hinge loss."""
    binary: bool = False
    """Whether a classifier has a single output for two classes."""
    note: str = ""
    """A note for the user on the encoding; empty for none."""
    one_hot: bool = False
    """Whether the loss gets a vector over the classes for each example, token or pixel."""

    def encode(self, targets: Structure, inputs: Structure) -> Structure:
        """Encode a batch's targets as the loss expects them."""
        if self.encoding == INPUTS:
            return inputs
        if self.encoding == ONE_HOT:
            rank = _LABEL_RANKS.get(self.name, 1)
            return tf.one_hot(tf.reshape(targets, tf.shape(targets)[:rank]), self.classes)
        if self.encoding == SPARSE:
            return tf.argmax(targets, axis=-1, output_type=tf.int32)
        if self.encoding == COLUMN:
            return tf.reshape(targets, [-1, 1])
        return targets

    def metrics(self, model: keras.Model) -> tuple[keras.Metric, ...]:
        """The accuracy that is measured besides the model's metrics, where it is defined."""
        accuracy = keras.metrics
        if any(name == "accuracy" for name in _metric_names(model)):
            return ()
        if self.name == "multi-label" or self.binary:
            return (MixedBinaryAccuracy("accuracy", threshold=0.0 if self.logits else 0.5),)
        if self.name not in ("classification", "sequence", "segmentation"):
            return ()
        kind = accuracy.CategoricalAccuracy if self.one_hot else accuracy.SparseCategoricalAccuracy
        return (kind("accuracy"),)


def find_task(model: keras.Model, outputs: Structure, dataset: Dataset, chosen: str) -> Task:
    """Find the task of a compiled model.

    Args:
        model: Compiled.
        outputs: The specs of its outputs, ``(None, ...)``.
        dataset: The data.
        chosen: The plan's ``task``.

    Raises:
        PlanError: The data has no targets, or none of the chosen kind.
    """
    loss, targets = single_loss(model.loss), dataset.spec.targets
    leaves = flatten(outputs)
    if loss is None or not leaves or chosen == "custom":
        return Task("custom")
    if chosen == "reconstruction" or (chosen == "auto" and _is_autoencoder(loss, leaves, dataset)):
        if isinstance(targets, ArraySpec) and targets.shape == tuple(leaves[0].shape[1:]):
            return Task("reconstruction")
        note = "" if targets is None else "the model learns to reconstruct its inputs; the data's targets are not used"
        return Task("reconstruction", INPUTS, note=note)
    if len(leaves) > 1 or isinstance(loss, list | dict):
        return Task(SEVERAL_OUTPUTS)
    if targets is None and is_of_keras(loss):
        raise PlanError("task", chosen, "the data has no targets, which the model's loss needs; use reconstruction")
    output = leaves[0]
    if chosen == "auto" and has_own_targets(loss):
        return Task("regression" if loss_kind(loss) == "poisson" else "custom")
    name = chosen if chosen != "auto" else _name(loss, output, targets, dataset)
    if name not in ("classification", "multi-label", "sequence", "segmentation"):
        return Task(name)
    units = int(output.shape[-1] or 1)
    logits = takes_scores(loss) and output_activation(model) not in ("softmax", "sigmoid")
    binary = units == 1
    classes = dataset.classes or (2 if binary else units)
    by_class = dataset.classes if name == "classification" else name != "multi-label" and units > 1
    encoding = _encoding(loss, output, targets) if by_class else UNCHANGED
    form = {ONE_HOT: "one-hot vectors", SPARSE: "class indices"}.get(encoding)
    note = f"labels are given to {loss_name(loss)} as {form}" if form and encoding == SPARSE else ""
    has_class_axis = isinstance(targets, ArraySpec) and units > 1 and targets.shape == tuple(output.shape[1:])
    return Task(
        name,
        encoding,
        max(classes, units) if encoding == ONE_HOT else classes,
        logits,
        binary,
        note,
        one_hot=encoding == ONE_HOT or (encoding == UNCHANGED and has_class_axis),
    )


def task_of_model(model: keras.Model, outputs: Structure, dataset: Dataset, plan: Plan) -> Task:
    """The task of a compiled model, with its own ``train_step`` or without.

    Args:
        model: Compiled.
        outputs: The specs of its outputs, ``(None, ...)``; ``None`` if it cannot be called.
        dataset: The data.
        plan: The plan.

    Raises:
        PlanError: The data has no targets, or none of the plan's task.
        ModelError: A classifier has too few outputs for the data's classes.
    """
    own_step = has_custom_train_step(model)
    task = custom_task(model, outputs, dataset) if own_step else find_task(model, outputs, dataset, plan.task)
    check_outputs(task, outputs, dataset, plan.model)
    return task


def custom_task(model: keras.Model, outputs: Structure, dataset: Dataset) -> Task:
    """The task of a model with its own ``train_step``: class labels are encoded as its compiled loss needs them."""
    loss, leaves = single_loss(model.loss), flatten(outputs)
    if loss is None or len(leaves) != 1 or not dataset.class_names or len(leaves[0].shape) != 2:
        return Task("custom")
    return Task("custom", _encoding(loss, leaves[0], dataset.spec.targets), dataset.classes)


def check_outputs(task: Task, outputs: Structure, dataset: Dataset, model_name: str) -> None:
    """Check that a classifier has enough outputs for the data's classes.

    Raises:
        ModelError: The classifier has too few outputs.
    """
    if task.name not in ("classification", "multi-label") or not dataset.classes:
        return
    output = flatten(outputs)[0]
    units = int(output.shape[-1] or 0) if len(output.shape) == 2 else 0
    if units >= dataset.classes or (units == 1 and dataset.classes == 2):
        return
    found = f"{numbers.counted(units, 'value')}" if units else "something other than a vector"
    raise ModelError(f"model {model_name} outputs {found} per example; the data has {dataset.classes} classes")


def probabilities_of(outputs: tf.Tensor, task: Task) -> tf.Tensor:
    """The predicted probability of each class, float32 ``[..., classes]``, from a classifier's outputs.

    Outputs outside of [0, 1], as with a custom loss, are treated as logits.
    """
    outputs = tf.cast(outputs, tf.float32)
    if task.binary or task.name == "multi-label":
        positive = tf.sigmoid(outputs) if task.logits else outputs
        return tf.concat([1 - positive, positive], axis=-1) if task.binary else positive
    scaled = tf.nn.softmax(outputs)
    if task.logits:
        return scaled
    fits = tf.reduce_all((outputs >= 0) & (outputs <= 1), axis=-1, keepdims=True)
    return tf.where(fits, outputs, scaled)


def _name(loss: Loss, output: Any, targets: Structure, dataset: Dataset) -> str:
    rank, name = len(output.shape), loss_kind(loss)
    if any(word in name for word in _CLASSIFYING):
        if "binary" in name or ("hinge" in name and "categorical" not in name):
            if _floats(targets) and rank > 2 and dataset.task not in ("multi-label", "segmentation"):
                return "reconstruction" if dataset.kind == "images" else "custom"
            if rank == 2:
                several = int(output.shape[-1] or 1) > 1 and dataset.task != "classification"
                return "multi-label" if several else "classification"
        return BY_RANK.get(rank, "custom")
    if not is_of_keras(loss):
        # A custom loss: the data tells what it may be for.
        fits = dataset.task == "classification" and rank == 2 and int(output.shape[-1] or 0) >= dataset.classes
        return "classification" if fits else "custom" if dataset.task in ("auto", "classification") else dataset.task
    if 1 < dataset.classes <= int(output.shape[-1] or 0) and are_labels(targets, output):
        return BY_RANK.get(rank, "custom")  # such as a squared error of probabilities
    if dataset.kind == "images" and rank == 4:
        return "reconstruction"
    return "multi-label" if rank == 2 and dataset.task == "multi-label" else "regression"


def _encoding(loss: Loss, output: Any, targets: Structure) -> str:
    """How class labels of a single target are encoded for a loss."""
    if not isinstance(targets, ArraySpec):
        return UNCHANGED
    labels = are_labels(targets, output)
    if labels and output.shape[-1] == 1:
        return COLUMN  # some metrics, such as F1Score, compare arrays of one shape only
    if labels and _takes_one_hot(loss):
        return ONE_HOT
    return SPARSE if not labels and takes_indices(loss) else UNCHANGED


def _takes_one_hot(loss: Loss) -> bool:
    loss = single_loss(loss)
    return loss is not None and is_of_keras(loss) and not takes_indices(loss) and not has_own_targets(loss)


def are_labels(targets: Structure, output: Any) -> bool:
    """Whether targets are class indices: integers, without the axis of classes that the output has."""
    if not isinstance(targets, ArraySpec) or "int" not in targets.dtype:
        return False
    rank = len(output.shape) - 1
    return len(targets.shape) == rank - 1 or (len(targets.shape) == rank and targets.shape[-1] == 1)


def _is_autoencoder(loss: Loss, outputs: list[Any], dataset: Dataset) -> bool:
    """Whether a model learns its inputs: there is nothing else that its outputs could be compared with."""
    targets = dataset.spec.targets
    if targets is None and loss_kind(loss) == "poisson":
        return is_like_inputs(outputs, dataset)  # the inputs are its counts
    if not is_like_inputs(outputs, dataset) or "categorical" in loss_kind(loss) or has_own_targets(loss):
        return False
    return targets is None or (
        is_of_keras(loss) and bool(dataset.class_names) and len(flatten(targets)[0].shape) + 1 < len(outputs[0].shape)
    )


def _floats(targets: Structure) -> bool:
    return isinstance(targets, ArraySpec) and targets.dtype.startswith("float")


def is_like_inputs(outputs: list[Any], dataset: Dataset) -> bool:
    """Whether the single output has the shape of the single input."""
    inputs = dataset.spec.inputs
    return len(outputs) == 1 and isinstance(inputs, ArraySpec) and tuple(outputs[0].shape[1:]) == inputs.shape


def _metric_names(model: keras.Model) -> list[str]:
    return [leaf.name for metric in model.metrics for leaf in getattr(metric, "metrics", None) or [metric]]
