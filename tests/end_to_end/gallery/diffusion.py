"""Learns to tell noise from images at any strength of the noise, as diffusion models do."""

from pathlib import Path

import keras
import numpy as np
from keras import layers, ops


def load():
    return np.load(Path(__file__).with_name("digits.npz"))["images"].reshape(-1, 64).astype("float32") / 8 - 1


class Diffusion(keras.Model):
    """Its output is the error of the noise that it found; ``compute_loss`` squares it."""

    def __init__(self):
        super().__init__()
        self.network = keras.Sequential(
            [
                keras.Input((65,)),
                layers.Dense(128, activation="gelu"),
                layers.Dense(128, activation="gelu"),
                layers.Dense(64),
            ]
        )
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, images):
        count = ops.shape(images)[0]
        angle = keras.random.uniform((count, 1), 0.05, 1.5, seed=self.seeds)
        noise = keras.random.normal((count, 64), seed=self.seeds)
        mixed = ops.cos(angle) * images + ops.sin(angle) * noise
        return self.network(ops.concatenate([mixed, angle], axis=-1)) - noise

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.square(y_pred))


def build():
    model = Diffusion()
    model.compile(keras.optimizers.AdamW(3e-3))
    return model
