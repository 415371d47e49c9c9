"""Says whether the batches of a model can be divided into micro-batches, with the gradients of the whole batch."""

from typing import Any

import keras

from accel_engine.keras_support.losses import every_loss, is_keras_defined, is_mean, is_sum
from accel_engine.keras_support.model_structure import fixed_batch, has_custom_train_step, metrics_of, walk
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


def answers_by_example(model: keras.Model) -> bool:
    """Whether a batch of any size gives the outputs, the loss and the metrics of each example, outside of training."""
    layers = [each for layer in all_layers(model) for each in (layer, *getattr(layer, "operations", ()))]
    return (
        fixed_batch(model) is None
        and is_divisible(model)
        and is_mean_over_examples(model)
        and all(map(_answers_by_example, layers))
        and all(is_keras_defined(getattr(metric, "_fn", type(metric).update_state)) for metric in metrics_of(model))
    )


def _answers_by_example(layer: Any) -> bool:
    is_known = type(layer).__module__.startswith(("keras.", "accel_engine."))
    is_stateful, is_over_batch = getattr(layer, "stateful", False), getattr(layer, "axis", None) == 0
    return (
        isinstance(layer, keras.Layer)
        and is_known
        and not (isinstance(layer, keras.layers.Lambda) or is_stateful or is_over_batch)
    )


def is_mean_over_examples(model: keras.Model) -> bool:
    """Whether the loss of a compiled model is the mean over examples, or over their unmasked tokens, of Keras' own."""
    losses = every_loss(model.loss)
    return bool(losses) and is_keras_defined(type(model).compute_loss) and all(map(is_mean, losses))


def is_sum_over_examples(model: keras.Model) -> bool:
    """Whether the losses of a compiled model are sums over examples."""
    losses = every_loss(model.loss)
    return bool(losses) and is_keras_defined(type(model).compute_loss) and all(map(is_sum, losses))
