"""Estimates the density of two moons by a flow whose inverse is known."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def load(seed):
    rng = np.random.default_rng(seed)
    angle, upper = rng.uniform(0, np.pi, 2000), rng.integers(0, 2, 2000)
    sign = 2 * upper - 1
    points = np.stack([np.cos(angle) * sign + (1 - upper), np.sin(angle) * sign + 0.5 * (1 - upper)], axis=1)
    return (points - [0.5, 0.25] + rng.normal(0, 0.05, (2000, 2))).astype("float32")


class Flow(keras.Model):
    """Each layer moves and stretches one coordinate, depending on the other."""

    def __init__(self):
        super().__init__()
        self.parts = [
            keras.Sequential([keras.Input((1,)), layers.Dense(32, activation="relu"), layers.Dense(2)])
            for _ in range(6)
        ]
        self.mean_loss = keras.metrics.Mean("loss")

    @property
    def metrics(self):
        return [self.mean_loss]

    def call(self, x):
        one, other = x[:, :1], x[:, 1:]
        stretched = 0.0
        for part in self.parts:
            scale, shift = ops.split(part(one), 2, axis=-1)
            scale = ops.tanh(scale)
            one, other = other * ops.exp(scale) + shift, one
            stretched = stretched + scale
        return ops.concatenate([one, other], axis=-1), stretched

    def _loss(self, x):
        z, stretched = self(x)
        return ops.mean(0.5 * ops.sum(ops.square(z), axis=-1, keepdims=True) - stretched) + np.log(2 * np.pi)

    def train_step(self, x):
        with tf.GradientTape() as tape:
            loss = self._loss(x)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        self.mean_loss.update_state(loss)
        return {"loss": self.mean_loss.result()}

    def test_step(self, x):
        self.mean_loss.update_state(self._loss(x))
        return {"loss": self.mean_loss.result()}


def build():
    model = Flow()
    model.compile(keras.optimizers.Adam(3e-3))
    return model
