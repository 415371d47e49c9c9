"""Learns an embedding in which an anchor is nearer to its own kind than to another: a loss without targets."""

from pathlib import Path

import keras
import numpy as np
from keras import layers, ops


def load(seed):
    digits = np.load(Path(__file__).with_name("digits.npz"))
    images, labels = digits["images"].reshape(-1, 64).astype("float32") / 16, digits["labels"]
    rng = np.random.default_rng(seed)
    anchors = rng.permutation(len(labels))
    same = np.array([rng.choice(np.flatnonzero(labels == labels[row])) for row in anchors])
    other = np.array([rng.choice(np.flatnonzero(labels != labels[row])) for row in anchors])
    return {"anchor": images[anchors], "positive": images[same], "negative": images[other]}


class Triplet(keras.Model):
    """Embeds three images and compares their distances."""

    def __init__(self):
        super().__init__()
        self.embed = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(16)])
        self.nearer = keras.metrics.Mean(name="nearer")

    def call(self, x):
        anchor, positive, negative = (self.embed(x[name]) for name in ("anchor", "positive", "negative"))
        near, far = (ops.sum(ops.square(anchor - each), axis=-1) for each in (positive, negative))
        return near, far

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        near, far = y_pred
        self.nearer.update_state(ops.cast(near < far, "float32"))
        return ops.mean(ops.relu(near - far + 0.5))


def build():
    model = Triplet()
    model.compile(keras.optimizers.Adam(3e-3))
    return model
