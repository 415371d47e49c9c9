"""Chooses the loss of a model: the plan's, the compiled model's, or the one that fits its task and targets."""

from collections.abc import Sequence
from typing import Any

import keras

from accel_engine import models
from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import Structure, flatten
from accel_engine.errors import FieldValue, ModelError, PlanError
from accel_engine.keras_support.losses import is_keras_defined, is_of_keras, loss_name, single_loss
from accel_engine.models.traits import returns_logits
from accel_engine.plan import Plan
from accel_engine.plan.augmentation import MIXING, augmentations_of, mixes_targets
from accel_engine.plan.task_choices import SMOOTHED
from accel_engine.private_names.keras_names import compiled_metrics, loss_takes_logits, replace_loss
from accel_engine.training.core.task import are_labels, is_like_inputs

LOSSES: dict[str, type[keras.losses.Loss]] = {
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "categorical_focal_crossentropy": keras.losses.CategoricalFocalCrossentropy,
    "binary_focal_crossentropy": keras.losses.BinaryFocalCrossentropy,
    "categorical_hinge": keras.losses.CategoricalHinge,
    "hinge": keras.losses.Hinge,
    "squared_hinge": keras.losses.SquaredHinge,
    "dice": keras.losses.Dice,
    "mean_squared_error": keras.losses.MeanSquaredError,
    "mean_absolute_error": keras.losses.MeanAbsoluteError,
    "mean_absolute_percentage_error": keras.losses.MeanAbsolutePercentageError,
    "mean_squared_logarithmic_error": keras.losses.MeanSquaredLogarithmicError,
    "huber": keras.losses.Huber,
    "log_cosh": keras.losses.LogCosh,
    "cosine_similarity": keras.losses.CosineSimilarity,
    "poisson": keras.losses.Poisson,
    "kl_divergence": keras.losses.KLDivergence,
}
"""Keras' losses by the names of :data:`accel_engine.plan.task_choices.LOSSES`."""


def choose_loss(outputs: Structure, dataset: Dataset, plan: Plan, *, logits: bool) -> keras.losses.Loss:
    """Choose the loss of a plan, or the one that fits its task.

    Args:
        outputs: The specs of a model's outputs.
        dataset: The data.
        plan: The plan.
        logits: Whether the outputs are logits rather than probabilities.

    Raises:
        ModelError: There is no such loss: it depends on what the model is for.
        PlanError: The loss of the task has no label smoothing.
    """
    leaves = flatten(outputs)
    if len(leaves) != 1:
        raise ModelError(f"the model has {len(leaves)} outputs and is not compiled: compile it with a loss for each")
    name = plan.loss if plan.loss != "auto" else _name_of_task(leaves, dataset, plan.task)
    return _make(name, plan, leaves[0], dataset, logits=logits)


def change_loss(model: keras.Model, outputs: Structure, dataset: Dataset, plan: Plan) -> list[str]:
    """Give a compiled model the loss and the label smoothing of a plan; returns notes for the user.

    Raises:
        PlanError: The model has several outputs, or its loss has no label smoothing.
    """
    if plan.loss == "auto" and not plan.label_smoothing:
        return []
    field, value = ("loss", plan.loss) if plan.loss != "auto" else ("label_smoothing", plan.label_smoothing)
    loss, leaves = single_loss(model.loss), flatten(outputs)
    if len(leaves) != 1 or isinstance(loss, list | dict):
        raise PlanError(field, value, "the model has several outputs: compile it with their losses")
    before = loss_name(loss)
    logits = loss_takes_logits(loss) if loss is not None and is_of_keras(loss) else returns_logits(model)
    name = plan.loss if plan.loss != "auto" else before.removeprefix("sparse_")
    if plan.loss == "auto" and (name not in SMOOTHED or not is_of_keras(loss)):
        raise PlanError(field, value, f"the model's loss {before} has none; use {' or '.join(SMOOTHED)}")
    new = _make(name, plan, leaves[0], dataset, logits=logits)
    if "sparse" not in new.name and (sparse := _sparse_metrics(model)):
        reason = f"encodes labels as vectors, which the model's metric {sparse[0]} does not take"
        raise PlanError(field, value, reason)
    replace_loss(model, new)
    return [f"the plan's loss {plan.loss} replaces the model's {before}"] if plan.loss != "auto" else []


def _make(name: str, plan: Plan, output: Any, dataset: Dataset, *, logits: bool) -> keras.losses.Loss:
    if name.startswith("categorical") and output.shape[-1] == 1:
        reason = f"{name} needs an output for each class; the model has one: use binary_crossentropy"
        raise PlanError("loss", plan.loss, reason)
    if name == "categorical_crossentropy" and not plan.label_smoothing and are_labels(dataset.spec.targets, output):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=logits)
    options: dict[str, Any] = {"from_logits": logits} if "crossentropy" in name else {}
    if plan.label_smoothing:
        if name not in SMOOTHED:
            reason = f"the loss {name} has none; it is of {' and '.join(SMOOTHED)}"
            raise PlanError("label_smoothing", plan.label_smoothing, reason)
        options["label_smoothing"] = plan.label_smoothing
    return LOSSES[name](**options)


def _name_of_task(leaves: list[Any], dataset: Dataset, chosen: str) -> str:
    targets = dataset.spec.targets
    task = dataset.task if chosen == "auto" else chosen
    if task in ("reconstruction", "regression"):
        return "mean_squared_error"
    if task == "auto" and targets is None and is_like_inputs(leaves, dataset):
        return "mean_squared_error"
    units = int(leaves[0].shape[-1] or 1)
    if task == "multi-label" or (task in ("classification", "segmentation") and units == 1):
        return "binary_crossentropy"
    if task in ("classification", "sequence", "segmentation"):
        return "categorical_crossentropy"
    raise ModelError(
        "the model is not compiled, and the data does not tell the task: compile it, or set --task or --loss"
    )


def _sparse_metrics(model: keras.Model) -> list[str]:
    """The names of a model's metrics that take class indices only."""
    names = map(loss_name, flatten(list(compiled_metrics(model))))
    return [name for name in names if "sparse" in name.lower()]


def take_mixed_targets(model: keras.Model, outputs: Structure, dataset: Dataset, plan: Plan) -> list[str]:
    """Replace a sparse crossentropy, which takes class indices only, if the plan mixes examples.

    Args:
        model: Compiled.
        outputs: The specs of its outputs.
        dataset: The data.
        plan: The plan.

    Returns:
        Notes for the user.

    Raises:
        PlanError: The model's loss or a metric takes class indices, and has no form for mixed ones.
    """
    names, task = plan.augmentation, dataset.task if plan.task == "auto" else plan.task
    leaves, loss = flatten(outputs), single_loss(model.loss)
    single = len(leaves) == 1 and loss is not None and not isinstance(loss, list | dict)
    of_classes = single and len(leaves[0].shape) == 2 and "sparse" in loss_name(loss)
    # With the task auto, the model's loss tells that it is a classification.
    if not of_classes or not mixes_targets(names, "classification" if task == "auto" else task):
        return []
    part = next(each for each in augmentations_of(names, "classification") if each in MIXING)
    name = loss_name(loss)
    of_keras = isinstance(loss, str) or is_keras_defined(getattr(loss, "fn", loss))
    if name != "sparse_categorical_crossentropy" or not of_keras:
        reason = f"{part} mixes labels, which the model's loss {name} does not take: set "
        raise PlanError("augmentation", names, reason, FieldValue("loss", "categorical_crossentropy"))
    if sparse := _sparse_metrics(model):
        reason = f"{part} mixes labels, which the model's metric {sparse[0]} does not take: compile it without"
        raise PlanError("augmentation", names, reason)
    vectors = keras.losses.CategoricalCrossentropy(from_logits=loss_takes_logits(loss))
    replace_loss(model, vectors)
    if isinstance(models.find(plan.model), models.ModelEntry):
        return []
    return [
        f"{part} mixes labels, which are given to categorical_crossentropy instead of {name}; its values are the same"
    ]


def mixed_metrics_note(plan: Plan, task: str, metrics: Sequence[keras.Metric]) -> list[str]:
    """A note on metrics that take mixed targets for whole ones, if the plan mixes examples.

    Args:
        plan: The plan.
        task: The name of the task.
        metrics: The metrics of each step.
    """
    names = [metric.name for metric in metrics if metric.name not in ("loss", "accuracy") and task != "regression"]
    if not names or not mixes_targets(plan.augmentation, task):
        return []
    has, it_is = ("has", "it is") if len(names) == 1 else ("have", "they are")
    return [
        f"labels are mixed in training: there, {', '.join(names)} {has} little meaning; in validation {it_is} right"
    ]
