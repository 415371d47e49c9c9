"""Writes words backwards with two LSTMs; the targets are letters as one-hot vectors."""

import keras
import numpy as np
from keras import layers

LETTERS = 10


def load(seed):
    words = np.random.default_rng(seed).integers(1, LETTERS - 1, (1500, 4))
    hot = np.eye(LETTERS, dtype="float32")
    answers = np.concatenate([words[:, ::-1], np.zeros((1500, 1), int)], axis=1)  # 0 ends a word
    given = np.concatenate([np.full((1500, 1), LETTERS - 1), words[:, ::-1]], axis=1)  # the last letter starts it
    return (hot[words], hot[given]), hot[answers]


def build():
    source, given = keras.Input((None, LETTERS)), keras.Input((None, LETTERS))
    _, *state = layers.LSTM(64, return_state=True)(source)
    x = layers.LSTM(64, return_sequences=True)(given, initial_state=state)
    model = keras.Model([source, given], layers.Dense(LETTERS, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(0.02), "categorical_crossentropy", metrics=["accuracy"])
    return model
