"""Classifies the rows of a table; numbers and categories arrive as one vector."""

import keras
from keras import layers


def build(input_shape):
    model = keras.Sequential(
        [keras.Input(input_shape), layers.Dense(32, activation="relu"), layers.Dense(1, activation="sigmoid")]
    )
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    return model
