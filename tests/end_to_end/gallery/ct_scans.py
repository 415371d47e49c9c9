"""Finds small dense spots in volumes."""

import keras
import numpy as np
from keras import layers


def load(seed):
    rng = np.random.default_rng(seed)
    volumes = rng.normal(0, 0.3, (300, 12, 12, 12, 1)).astype("float32")
    sick = rng.integers(0, 2, 300)
    for row in np.flatnonzero(sick):
        volumes[(row, *(slice(at, at + 3) for at in rng.integers(0, 9, 3)))] += 1
    return volumes, sick.astype("float32")


def build():
    model = keras.Sequential(
        [
            keras.Input((12, 12, 12, 1)),
            layers.Conv3D(8, 3, activation="relu"),
            layers.MaxPooling3D(),
            layers.Conv3D(16, 3, activation="relu"),
            layers.GlobalMaxPooling3D(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    return model
