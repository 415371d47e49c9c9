"""Replaces the updates of Keras' optimizers with one kernel for each variable while a step is traced without XLA.

Keras' Adam has eight kernels for each variable, which read and write the whole of it. Only the update of a variable is
replaced: clipping, weight decay, averages, loss scaling and the sum over replicas are Keras' own. SGD gives the same
to the bit. Adam's updates differ by up to 1e-5 of their size, as TensorFlow subtracts the decays from 1 in float32.

TensorFlow's kernels of RMSprop need a variable for the momentum, which Keras' RMSprop may not have. It has no kernels
for the other optimizers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.private_names.keras_names import slots_of


@contextmanager
def use_fast_updates(optimizer: keras.Optimizer) -> Iterator[None]:
    """Use the faster updates of an optimizer, if it has some, in steps that are traced inside the ``with`` block."""
    inner = inner_optimizer(optimizer)
    update = _fast_update(inner)
    with override_calls({inner: update} if update else {}, "update_step"):
        yield


def _fast_update(optimizer: Any) -> Callable[..., None] | None:
    """An ``update_step`` for Keras' own Adam, AdamW and SGD, else ``None``."""
    if type(optimizer) in {keras.optimizers.Adam, keras.optimizers.AdamW} and not optimizer.amsgrad:
        update, wanted = _adam, {"momentum", "velocity"}
    elif type(optimizer) is keras.optimizers.SGD:
        update, wanted = _sgd, {"momentum"} if optimizer.momentum else set()
    else:
        return None
    keras_update = optimizer.update_step

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        slots = slots_of(optimizer, variable) or {}
        # The gradient of an embedding may have some rows only.
        if not isinstance(gradient, tf.Tensor) or not wanted <= slots.keys():
            keras_update(gradient, variable, learning_rate)
            return
        rate, gradient = (tf.cast(each, variable.dtype) for each in (learning_rate, gradient))
        update(optimizer, variable, gradient, rate, {name: slot.value.handle for name, slot in slots.items()})

    return update_step


def _adam(optimizer: Any, variable: Any, gradient: tf.Tensor, rate: tf.Tensor, slots: dict[str, tf.Tensor]) -> None:
    first, second = (tf.constant(each, variable.dtype) for each in (optimizer.beta_1, optimizer.beta_2))
    step = tf.cast(optimizer.iterations.value + 1, variable.dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=slots["momentum"],
        v=slots["velocity"],
        beta1_power=first**step,
        beta2_power=second**step,
        lr=rate,
        beta1=first,
        beta2=second,
        epsilon=tf.constant(optimizer.epsilon, variable.dtype),
        grad=gradient,
    )


def _sgd(optimizer: Any, variable: Any, gradient: tf.Tensor, rate: tf.Tensor, slots: dict[str, tf.Tensor]) -> None:
    if not slots:
        tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)
        return
    tf.raw_ops.ResourceApplyKerasMomentum(
        var=variable.handle,
        accum=slots["momentum"],
        lr=rate,
        grad=gradient,
        momentum=tf.constant(optimizer.momentum, variable.dtype),
        use_nesterov=optimizer.nesterov,
    )
