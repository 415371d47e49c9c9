"""Lets a loss take mixed targets, such as 0.7 of one class and 0.3 of another."""

from collections.abc import Sequence

import keras

from accel_engine import models
from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import Structure, flatten
from accel_engine.errors import FieldValue, PlanError
from accel_engine.keras_support.losses import is_keras_defined, loss_name, single_loss
from accel_engine.plan import Plan
from accel_engine.plan.augmentation import MIXING, mixes_targets, parts_of
from accel_engine.private_names.keras_names import compiled_metrics, loss_takes_logits, replace_loss


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
    part = next(each for each in parts_of(names, "classification") if each in MIXING)
    name = loss_name(loss)
    of_keras = isinstance(loss, str) or is_keras_defined(getattr(loss, "fn", loss))
    if name != "sparse_categorical_crossentropy" or not of_keras:
        reason = f"{part} mixes labels, which the model's loss {name} does not take: set "
        raise PlanError("augmentation", names, reason, FieldValue("loss", "categorical_crossentropy"))
    metrics, weighted = compiled_metrics(model)
    if sparse := [each for each in flatten([metrics, weighted]) if "sparse" in loss_name(each).lower()]:
        reason = (
            f"{part} mixes labels, which the model's metric {loss_name(sparse[0])} does not take: compile it without"
        )
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
        metrics: What is measured at each step.
    """
    names = [metric.name for metric in metrics if metric.name not in ("loss", "accuracy") and task != "regression"]
    if not names or not mixes_targets(plan.augmentation, task):
        return []
    has, it_is = ("has", "it is") if len(names) == 1 else ("have", "they are")
    return [
        f"labels are mixed in training: there, {', '.join(names)} {has} little meaning; in validation {it_is} right"
    ]
