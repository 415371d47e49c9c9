"""Adds numbers that are written as text; a generator makes sums without end."""

import keras
import numpy as np
from keras import layers

SYMBOLS = "0123456789+ "


def encode(texts):
    return np.eye(len(SYMBOLS), dtype="float32")[[[SYMBOLS.index(symbol) for symbol in text] for text in texts]]


def sums(rng, count):
    numbers = rng.integers(0, 10, (count, 2))
    return encode([f"{a}+{b}" for a, b in numbers]), encode([str(a + b).ljust(2) for a, b in numbers])


def load(batch_size, seed):
    def batches():
        rng = np.random.default_rng(seed)
        while True:
            yield sums(rng, batch_size)

    return {"train": batches, "validation": sums(np.random.default_rng(seed + 1), 200)}


def build():
    model = keras.Sequential(
        [
            keras.Input((3, len(SYMBOLS))),
            layers.LSTM(64),
            layers.RepeatVector(2),
            layers.LSTM(64, return_sequences=True),
            layers.Dense(len(SYMBOLS), activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy", metrics=["accuracy"])
    return model
