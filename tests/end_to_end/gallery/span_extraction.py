"""Finds where the answer to a question starts and ends in a text: two outputs without names."""

import keras
import numpy as np
from keras import layers

WORDS, LENGTH = 60, 16


def load(seed):
    rng = np.random.default_rng(seed)
    texts = rng.integers(10, WORDS, (2000, LENGTH))
    start = rng.integers(1, LENGTH - 4, 2000)
    end = start + rng.integers(0, 3, 2000)
    rows = np.arange(2000)
    texts[rows, start - 1], texts[rows, end + 1] = 1, 2  # words around an answer
    return texts.astype("int32"), (start, end)


def build():
    text = keras.Input((LENGTH,), dtype="int32")
    x = layers.Conv1D(32, 3, padding="same", activation="relu")(layers.Embedding(WORDS, 16)(text))
    start, end = (layers.Softmax(name=name)(layers.Flatten()(layers.Dense(1)(x))) for name in ("start", "end"))
    model = keras.Model(text, [start, end])
    losses = ["sparse_categorical_crossentropy", "sparse_categorical_crossentropy"]
    model.compile(keras.optimizers.Adam(1e-3), losses, metrics=[["accuracy"], ["accuracy"]])
    return model
