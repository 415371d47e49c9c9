"""Compresses images to entries of a learned table; a layer adds the loss that the table needs."""

from pathlib import Path

import keras
import numpy as np
from keras import layers, ops


def load():
    images = np.load(Path(__file__).with_name("digits.npz"))["images"][..., None].astype("float32") / 16
    return images, images


class Quantizer(layers.Layer):
    """Replaces vectors by the nearest of 32 entries; gradients pass through."""

    def build(self, shape):
        self.table = self.add_weight(shape=(32, shape[-1]), initializer="random_uniform")

    def call(self, x):
        flat = ops.reshape(x, (-1, x.shape[-1], 1))
        distance = ops.sum(ops.square(flat - ops.transpose(self.table)[None]), axis=1)
        nearest = ops.reshape(ops.take(self.table, ops.argmin(distance, axis=-1), axis=0), ops.shape(x))
        still, fixed = ops.stop_gradient(x), ops.stop_gradient(nearest)
        self.add_loss(ops.mean(ops.square(still - nearest)) + 0.25 * ops.mean(ops.square(x - fixed)))
        return x + ops.stop_gradient(nearest - x)


def build():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(8, 1),
            Quantizer(),
            layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(1, 3, padding="same"),
        ]
    )
    model.compile(keras.optimizers.Adam(5e-3), "mean_squared_error", metrics=["mean_squared_error"])
    return model
