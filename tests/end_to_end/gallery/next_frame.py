"""Predicts the next frame of a video of a moving square."""

import keras
import numpy as np
from keras import layers


def load(seed):
    rng = np.random.default_rng(seed)
    videos = np.zeros((200, 6, 12, 12, 1), "float32")
    for video in videos:
        place, speed = rng.integers(0, 12, 2), rng.integers(-1, 2, 2)
        for frame in video:
            rows, columns = ((place[axis] + np.arange(3)) % 12 for axis in (0, 1))
            frame[np.ix_(rows, columns)] = 1
            place = place + speed
    return videos[:, :-1], videos[:, 1:]


def build():
    model = keras.Sequential(
        [
            keras.Input((None, 12, 12, 1)),
            layers.ConvLSTM2D(8, 3, padding="same", return_sequences=True),
            layers.Conv3D(1, 3, padding="same", activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy")
    return model
