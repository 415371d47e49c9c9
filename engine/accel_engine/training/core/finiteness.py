"""Finds variables with values that are not finite: NaN or infinite."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from accel_engine.training.core.assembly import Assembly

_DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


class Finiteness:
    """Checks the weights of a model and the state of its optimizer, on the devices that they are on.

    A weight that is not trainable, such as a mask, may have been infinite from the start: it may stay so.

    Args:
        assembly: The model and optimizer, as they were built.
    """

    def __init__(self, assembly: Assembly) -> None:
        model = assembly.model
        state = model.optimizer.variables if model.optimizer is not None else ()
        every = {id(each): each for each in (*model.weights, *state)}.values()
        floats = [each for each in every if each.value.dtype in _DTYPES]
        frozen = {id(each) for each in model.weights if not each.trainable}
        self._variables = [each for each in floats if id(each) not in frozen or _finite([each])[0]]
        self._finite = tf.function(lambda: _finite(self._variables), autograph=False)

    def failures(self) -> list[keras.Variable]:
        """The variables with values that are not finite."""
        finite = np.asarray(self._finite()) if self._variables else ()
        return [each for each, is_finite in zip(self._variables, finite, strict=True) if not is_finite]


def _finite(variables: Sequence[keras.Variable]) -> tf.Tensor:
    """Whether all values of each variable are finite, bool ``[variables]``."""
    return tf.stack([tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(each.value))) for each in variables])
