"""A GAN that makes the digit that it is asked for: both networks see the label."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def load():
    digits = np.load(Path(__file__).with_name("digits.npz"))
    return digits["images"].reshape(-1, 64).astype("float32") / 8 - 1, np.eye(10, dtype="float32")[digits["labels"]]


class ConditionalGAN(keras.Model):
    """Its ``test_step`` measures how far a generated digit is from the mean of the real ones."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential(
            [keras.Input((26,)), layers.Dense(64, activation="relu"), layers.Dense(64, activation="tanh")]
        )
        self.discriminator = keras.Sequential(
            [keras.Input((74,)), layers.Dense(64, activation="leaky_relu"), layers.Dense(1)]
        )
        self.seeds = keras.random.SeedGenerator(1)

    def compile(self, d_optimizer, g_optimizer, loss):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.compare = d_optimizer, g_optimizer, loss

    def call(self, labels):
        noise = keras.random.normal((ops.shape(labels)[0], 16), seed=self.seeds)
        return self.generator(ops.concatenate([noise, labels], axis=-1))

    def _judge(self, images, labels):
        return self.discriminator(ops.concatenate([images, labels], axis=-1))

    def train_step(self, data):
        real, labels = data
        count = ops.shape(real)[0]
        yes, no = ops.ones((count, 1)), ops.zeros((count, 1))
        fake = self(labels)
        with tf.GradientTape() as tape:
            d_loss = self.compare(yes, self._judge(real, labels)) + self.compare(no, self._judge(fake, labels))
        weights = self.discriminator.trainable_weights
        self.d_optimizer.apply(tape.gradient(d_loss, weights), weights)
        with tf.GradientTape() as tape:
            g_loss = self.compare(yes, self._judge(self(labels), labels))
        weights = self.generator.trainable_weights
        self.g_optimizer.apply(tape.gradient(g_loss, weights), weights)
        return {"d_loss": d_loss, "g_loss": g_loss}

    def test_step(self, data):
        real, labels = data
        counts = ops.sum(labels, axis=0)[:, None]
        mean = ops.matmul(ops.transpose(labels), real) / ops.maximum(counts, 1)
        made = ops.matmul(ops.transpose(labels), self(labels)) / ops.maximum(counts, 1)
        return {"distance": ops.mean(ops.square(mean - made))}


def build():
    model = ConditionalGAN()
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3, 0.5), keras.optimizers.Adam(2e-3, 0.5), loss)
    return model
