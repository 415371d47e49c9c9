"""Two networks against each other: one makes images, the other tells them from real ones."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def load():
    return np.load(Path(__file__).with_name("digits.npz"))["images"][..., None].astype("float32") / 8 - 1


class GAN(keras.Model):
    """Each network has its own optimizer and loss."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential(
            [
                keras.Input((16,)),
                layers.Dense(2 * 2 * 32, activation="relu"),
                layers.Reshape((2, 2, 32)),
                layers.Conv2DTranspose(16, 4, strides=2, padding="same", activation="relu"),
                layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
            ]
        )
        self.discriminator = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                layers.Conv2D(16, 4, strides=2, padding="same", activation="leaky_relu"),
                layers.Flatten(),
                layers.Dropout(0.2),
                layers.Dense(1),
            ]
        )
        self.seeds = keras.random.SeedGenerator(1)
        self.d_loss, self.g_loss = keras.metrics.Mean("d_loss"), keras.metrics.Mean("g_loss")

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def compile(self, d_optimizer, g_optimizer, loss):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.compare = d_optimizer, g_optimizer, loss

    def train_step(self, real):
        count = ops.shape(real)[0]
        fake = self.generator(keras.random.normal((count, 16), seed=self.seeds))
        truth = ops.concatenate([ops.ones((count, 1)), ops.zeros((count, 1))])
        with tf.GradientTape() as tape:
            d_loss = self.compare(truth, self.discriminator(ops.concatenate([real, fake]), training=True))
        weights = self.discriminator.trainable_weights
        self.d_optimizer.apply(tape.gradient(d_loss, weights), weights)
        noise = keras.random.normal((count, 16), seed=self.seeds)
        with tf.GradientTape() as tape:
            g_loss = self.compare(ops.ones((count, 1)), self.discriminator(self.generator(noise)))
        weights = self.generator.trainable_weights
        self.g_optimizer.apply(tape.gradient(g_loss, weights), weights)
        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}


def build():
    model = GAN()
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3, 0.5), keras.optimizers.Adam(2e-3, 0.5), loss)
    return model
