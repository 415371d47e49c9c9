"""A Wasserstein GAN: its critic takes three steps for each of the generator, with a penalty on its gradients."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def load():
    return np.load(Path(__file__).with_name("digits.npz"))["images"].reshape(-1, 64).astype("float32") / 8 - 1


class WGAN(keras.Model):
    """The critic's loss estimates how far generated images are from real ones."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential(
            [keras.Input((16,)), layers.Dense(64, activation="relu"), layers.Dense(64, activation="tanh")]
        )
        self.critic = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="leaky_relu"), layers.Dense(1)])
        self.seeds = keras.random.SeedGenerator(1)

    def compile(self, c_optimizer, g_optimizer):
        super().compile()
        self.c_optimizer, self.g_optimizer = c_optimizer, g_optimizer

    def _fake(self, count):
        return self.generator(keras.random.normal((count, 16), seed=self.seeds))

    def _penalty(self, real, fake):
        share = keras.random.uniform((ops.shape(real)[0], 1), seed=self.seeds)
        between = share * real + (1 - share) * fake
        with tf.GradientTape() as tape:
            tape.watch(between)
            score = self.critic(between)
        norm = ops.sqrt(ops.sum(ops.square(tape.gradient(score, between)), axis=-1) + 1e-9)
        return ops.mean(ops.square(norm - 1))

    def train_step(self, real):
        count = ops.shape(real)[0]
        for _ in range(3):
            fake = self._fake(count)
            with tf.GradientTape() as tape:
                c_loss = ops.mean(self.critic(fake)) - ops.mean(self.critic(real)) + 10 * self._penalty(real, fake)
            weights = self.critic.trainable_weights
            self.c_optimizer.apply(tape.gradient(c_loss, weights), weights)
        with tf.GradientTape() as tape:
            g_loss = -ops.mean(self.critic(self._fake(count)))
        weights = self.generator.trainable_weights
        self.g_optimizer.apply(tape.gradient(g_loss, weights), weights)
        return {"c_loss": c_loss, "g_loss": g_loss}


def build():
    model = WGAN()
    model.compile(keras.optimizers.Adam(1e-3, 0.5), keras.optimizers.Adam(1e-3, 0.5))
    return model
