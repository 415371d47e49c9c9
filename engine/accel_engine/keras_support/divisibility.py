"""Says whether the batches of a model can be divided into micro-batches, with the gradients of the whole batch."""

from typing import Any

import keras

from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.keras_support.model_structure import has_custom_train_step, walk
from accel_engine.private_names.keras_names import all_layers


def penalizes_outputs(layer: Any) -> bool:
    """Whether a layer has an ``activity_regularizer``, which Keras sums over a batch."""
    return getattr(layer, "activity_regularizer", None) is not None


def why_indivisible(model: keras.Model) -> str:
    """Why micro-batches would not give the gradients of the whole batch; empty if they would, given such a loss."""
    if not is_keras_defined(type(model).compute_loss):
        return "the model computes its own loss"
    if any(
        isinstance(layer, keras.layers.Masking) or getattr(layer, "mask_zero", False) for layer in all_layers(model)
    ):
        return "the model masks tokens, over whose number a loss is the mean"
    if any(penalizes_outputs(layer) for layer, _ in walk(model)):
        return "an activity_regularizer of the model sums over the batch, so its share would shrink"
    return ""


def is_divisible(model: keras.Model) -> bool:
    """Whether steps of a model can be divided into micro-batches, given a loss that is a mean over examples."""
    return not has_custom_train_step(model) and not why_indivisible(model)
