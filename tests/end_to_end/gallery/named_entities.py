"""Labels each word of a sentence: outside of a name, a person, or a place. Padding weighs nothing."""

import keras
import numpy as np
from keras import layers

WORDS = 120


def load(seed):
    rng = np.random.default_rng(seed)
    words = rng.integers(10, WORDS, (1000, 12))
    labels = np.zeros((1000, 12), "int32")
    for cue in (1, 2):  # such as "Mrs" and "in": the next word is a name
        rows, places = np.nonzero(rng.random((1000, 11)) < 0.15)
        words[rows, places], words[rows, places + 1] = cue, rng.integers(10, WORDS, len(rows))
    for label in (1, 2):
        labels[:, 1:][words[:, :-1] == label] = label
    present = np.arange(12) < rng.integers(4, 13, (1000, 1))
    return (words * present).astype("int32"), labels * present, present.astype("float32")


def build():
    model = keras.Sequential(
        [
            keras.Input((12,), dtype="int32"),
            layers.Embedding(WORDS, 16),
            layers.Conv1D(32, 3, padding="causal", activation="relu"),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    return model
