"""Tells whether two images show the same digit, with a contrastive loss."""

from pathlib import Path

import keras
import numpy as np
from keras import layers, ops


def load(seed):
    digits = np.load(Path(__file__).with_name("digits.npz"))
    images, labels = digits["images"].reshape(-1, 64).astype("float32") / 16, digits["labels"]
    rng = np.random.default_rng(seed)
    first = rng.permutation(len(labels)).repeat(2)
    second = rng.permutation(len(labels)).repeat(2)
    for row in range(0, len(first), 2):  # every other pair shows the same digit
        second[row] = rng.choice(np.flatnonzero(labels == labels[first[row]]))
    different = (labels[first] != labels[second]).astype("float32")
    return (images[first], images[second]), different


def contrastive(different, distance):
    near = (1 - different) * ops.square(distance)
    far = different * ops.square(ops.relu(1 - distance))
    return ops.mean(near + far, axis=-1)


class Distance(layers.Layer):
    """The Euclidean distance of two vectors."""

    def call(self, left, right):
        return ops.sqrt(ops.sum(ops.square(left - right), axis=-1, keepdims=True) + 1e-9)


def build():
    tower = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(16)])
    left, right = keras.Input((64,)), keras.Input((64,))
    model = keras.Model([left, right], Distance()(tower(left), tower(right)))
    accuracy = keras.metrics.BinaryAccuracy(threshold=0.5, name="accuracy")
    model.compile(keras.optimizers.Adam(3e-3), contrastive, metrics=[accuracy])
    return model
