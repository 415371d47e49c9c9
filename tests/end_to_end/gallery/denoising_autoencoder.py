"""Removes noise from digits."""

from pathlib import Path

import keras
import numpy as np
from keras import layers


def load(seed):
    clean = np.load(Path(__file__).with_name("digits.npz"))["images"][..., None].astype("float32") / 16
    noise = np.random.default_rng(seed).normal(0, 0.3, clean.shape)
    noisy = np.clip(clean + noise, 0, 1).astype("float32")
    return {"train": (noisy[:1500], clean[:1500]), "validation": (noisy[1500:], clean[1500:])}


def build():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(1, 3, padding="same", activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["mean_absolute_error"])
    return model
