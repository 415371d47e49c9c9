"""Computes a step without its update, and tells what is not finite first: a layer, the loss or a gradient."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import format_error
from accel_engine.keras_support.model_structure import override_calls, walk
from accel_engine.models.model_call import call_model
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.float16_range import LARGEST
from accel_engine.training.core.metric_states import compute_loss, mean_loss

INPUTS = "the inputs of the model are not finite"
"""What is found if they are not finite as the model gets them, scaled and augmented."""


class CheckedStep:
    """Computes steps of an assembly, layer by layer, without changing its weights.

    The statistics of batch normalization and the state of random layers change.

    Args:
        assembly: Model, data and strategy.

    Attributes:
        reason: Why it cannot be done; empty if it can.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self.reason = ""
        if assembly.has_custom_train_step:
            self.reason = "the model has a custom train_step"
        elif assembly.on_tpu:
            self.reason = "a TPU runs whole steps only"

    def first_not_finite(self, raw: Batch) -> str:
        """What is not finite first; empty if all is finite, or if it cannot be told.

        Args:
            raw: The examples of the step on all replicas, NumPy arrays ``[examples, ...]``.
        """
        if self.reason:
            return ""
        found: list[str] = []
        batch = map_structure(tf.convert_to_tensor, raw)
        try:
            self._assembly.strategy.run(lambda: self._run(batch, found))
        except Exception as error:  # noqa: BLE001 (a user's layer may need a graph, and memory may be short)
            self.reason = f"the step could not be computed layer by layer: {format_error(error)}"
        return found[0] if found else ""

    def _run(self, raw: Batch, found: list[str]) -> None:
        """Append what is not finite to a list, in the order in which it is computed."""
        model = self._assembly.model
        batch = self._assembly.prepare_training(raw)
        if any(not _is_finite(each) for each in flatten(batch.inputs)):
            found.append(INPUTS)
        layers = {layer: _checking(layer, found) for layer, _ in walk(model) if not isinstance(layer, keras.Model)}
        with tf.GradientTape() as tape:
            with override_calls(layers):
                outputs = call_model(model, batch.inputs, training=True)
            loss = mean_loss(compute_loss(model, batch, outputs, training=True))
        if not _is_finite(loss):
            found.append("the loss is not finite, although the outputs of all layers are")
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in reversed(list(zip(model.trainable_variables, gradients, strict=True))):
            if gradient is not None and not _is_finite(tf.convert_to_tensor(gradient)):
                found.append(f"the gradient of {variable.path} is not finite first, although the loss is finite")


def _checking(layer: Any, found: list[str]) -> Callable[..., Any]:
    call = layer.call

    def checking(*inputs: Any, **options: Any) -> Any:
        outputs = call(*inputs, **options)
        for each in keras.tree.flatten(outputs):
            if not _is_finite(each):
                limit = f" in float16, which ends at {LARGEST:,}" if each.dtype == tf.float16 else ""
                found.append(f"the output of layer {layer.name} ({type(layer).__name__}) is not finite first{limit}")
                break
        return outputs

    return checking


def _is_finite(value: Any) -> bool:
    """Whether all values of a tensor are finite; true for those that are no floats."""
    if not tf.is_tensor(value) or not value.dtype.is_floating:
        return True
    return bool(tf.reduce_all(tf.math.is_finite(value)))
