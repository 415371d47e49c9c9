"""Models with a layer that takes more memory than any machine has, unless it gets few examples at a time."""

from pathlib import Path

MODELS = """
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from keras.src.backend.common.stateless_scope import in_stateless_scope

FITS = {fits}

class Hungry(layers.Layer):
    # No address space has the half PiB that it takes. TensorFlow's allocator waits 10 s before it says so.
    __module__ = "{module}"

    def __init__(
        self, first_call=0, in_training=True, in_inference=False, in_numpy=True, fits_recomputed=False, **options
    ):
        super().__init__(**options)
        self.first_call, self.in_training, self.in_inference = first_call, in_training, in_inference
        self.in_numpy, self.fits_recomputed = in_numpy, fits_recomputed

    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False)

    def call(self, x, training=False):
        if not (self.in_training if training else self.in_inference):
            return x
        if self.fits_recomputed and in_stateless_scope():  # in which parts are computed that are computed again
            return x
        if training and self.first_call:
            self.calls.assign(self.calls + 1)
        too_many = tf.logical_and(self.calls >= self.first_call, tf.shape(x)[0] > FITS)
        shape = [tf.where(too_many, 1 << 25, 1), tf.where(too_many, 1 << 22, 1)]
        if self.in_numpy:
            held = tf.numpy_function(lambda shape: np.empty(shape, np.float32).nbytes, [shape], tf.int64)
        else:
            held = tf.raw_ops.Empty(shape=shape, dtype=tf.float32)
        with tf.control_dependencies([held]):
            return tf.identity(x)

def of(*more, **options):
    def build(input_shape, classes):
        inside = [each() for each in more]
        return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(32, activation="relu"),
                                 *inside, Hungry(**options), layers.Dense(classes, activation="softmax")])
    return build

def plain(input_shape, classes):
    return of()(input_shape, classes)

def tensors(input_shape, classes):
    return of(in_numpy=False)(input_shape, classes)

def later(input_shape, classes):
    return of(first_call=31)(input_shape, classes)

def normalized(input_shape, classes):
    return of(layers.BatchNormalization)(input_shape, classes)

def random(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(32), Hungry(fits_recomputed=True),
                             layers.BatchNormalization(), layers.ReLU(), layers.Dropout(0.3), layers.Dense(32),
                             layers.BatchNormalization(), layers.ReLU(), layers.Dense(classes, activation="softmax")])

def validating(input_shape, classes):
    return of(in_training=False, in_inference=True)(input_shape, classes)
"""


def write_models(folder: Path, *, fits: int, keras_own: bool = True) -> Path:
    """Write the models to a file.

    Args:
        folder: Where.
        fits: The most examples that fit in memory.
        keras_own: Whether the hungry layer looks like one of Keras, of which it is known what it computes.
    """
    path = folder / f"hungry_{fits}.py"
    module = "keras.src.layers.hungry" if keras_own else "hungry"
    path.write_text(MODELS.replace("{fits}", str(fits)).replace("{module}", module))
    return path
