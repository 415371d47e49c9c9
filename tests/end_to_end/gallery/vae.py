"""A variational autoencoder with a custom ``train_step``; images have no targets."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def load():
    return np.load(Path(__file__).with_name("digits.npz"))["images"].reshape(-1, 64).astype("float32") / 16


class VAE(keras.Model):
    """Restores images from two random numbers whose distribution depends on the image."""

    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(4)])
        self.decoder = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64, activation="sigmoid")])
        self.seeds = keras.random.SeedGenerator(1)
        self.means = [keras.metrics.Mean(name) for name in ("loss", "reconstruction_loss", "kl_loss")]

    @property
    def metrics(self):
        return self.means

    def call(self, images):
        mean, _ = ops.split(self.encoder(images), 2, axis=-1)
        return self.decoder(mean)

    def _measure(self, images):
        mean, log_variance = ops.split(self.encoder(images), 2, axis=-1)
        noise = keras.random.normal(ops.shape(mean), seed=self.seeds)
        restored = self.decoder(mean + ops.exp(0.5 * log_variance) * noise)
        reconstruction = 64 * ops.mean(keras.losses.binary_crossentropy(images, restored))
        kl = -0.5 * ops.mean(ops.sum(1 + log_variance - ops.square(mean) - ops.exp(log_variance), axis=-1))
        for metric, value in zip(self.means, (reconstruction + kl, reconstruction, kl), strict=True):
            metric.update_state(value)
        return reconstruction + kl

    def train_step(self, images):
        with tf.GradientTape() as tape:
            loss = self._measure(images)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return self.get_metrics_result()

    def test_step(self, images):
        self._measure(images)
        return self.get_metrics_result()


def build():
    model = VAE()
    model.compile(keras.optimizers.Adam(5e-3))
    return model
