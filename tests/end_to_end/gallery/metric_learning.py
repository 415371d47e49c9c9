"""Learns an embedding for image search: each batch has two images of every digit."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


class Pairs(keras.utils.PyDataset):
    """A batch is a tuple of its inputs alone, which are two images of each digit."""

    def __init__(self, first, last, seed):
        super().__init__()
        digits = np.load(Path(__file__).with_name("digits.npz"))
        self.images = digits["images"][first:last].reshape(-1, 64).astype("float32") / 16
        self.labels, self.seed = digits["labels"][first:last], seed

    def __len__(self):
        return 40

    def __getitem__(self, index):
        rng = np.random.default_rng([self.seed, index])
        rows = np.stack([rng.choice(np.flatnonzero(self.labels == digit), 2, replace=False) for digit in range(10)])
        return ((self.images[rows[:, 0]], self.images[rows[:, 1]]),)


def load(seed):
    return {"train": Pairs(0, 1500, seed), "validation": Pairs(1500, 1797, seed)}


class Search(keras.Model):
    """Each anchor has to find its own positive among the positives of all digits."""

    def __init__(self):
        super().__init__()
        self.embed = keras.Sequential(
            [layers.Dense(64, activation="relu"), layers.Dense(16), layers.UnitNormalization()]
        )
        self.mean_loss = keras.metrics.Mean("loss")
        self.found = keras.metrics.SparseCategoricalAccuracy(name="found")

    @property
    def metrics(self):
        return [self.mean_loss, self.found]

    def call(self, pair):
        return ops.matmul(self.embed(pair[0]), ops.transpose(self.embed(pair[1]))) / 0.2

    def _measure(self, pair):
        similarity = self(pair, training=True)
        labels = ops.arange(ops.shape(similarity)[0])
        self.found.update_state(labels, similarity)
        loss = ops.mean(keras.losses.sparse_categorical_crossentropy(labels, similarity, from_logits=True))
        self.mean_loss.update_state(loss)
        return loss

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._measure(data[0])
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return self.get_metrics_result()

    def test_step(self, data):
        self._measure(data[0])
        return self.get_metrics_result()


def build():
    model = Search()
    model.compile(keras.optimizers.Adam(3e-3))
    return model
