"""A custom ``train_step``: half of the gradient comes from inputs with noise."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def load(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (2000, 4)).astype("float32")
    return x, np.sin(3 * x[:, :1]) * x[:, 1:2]


class Noisy(keras.Model):
    """Overrides ``train_step`` only; validation is Keras' own."""

    def train_step(self, data):
        x, y = data
        noisy = x + keras.random.normal(ops.shape(x), stddev=0.02)
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = 0.5 * self.compute_loss(y=y, y_pred=outputs) + 0.5 * self.compute_loss(y=y, y_pred=self(noisy))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return self.compute_metrics(x, y, outputs) | {"loss": loss}


def build():
    inputs = keras.Input((4,))
    x = layers.Dense(64, activation="relu")(layers.Dense(64, activation="relu")(inputs))
    model = Noisy(inputs, layers.Dense(1)(x))
    model.compile(keras.optimizers.Adam(5e-3), "mean_squared_error", metrics=["mean_absolute_error"])
    return model
