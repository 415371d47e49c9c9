"""Tells from a review, as word numbers of any length, whether it is good."""

import keras
import numpy as np
from keras import layers

WORDS = 200


def load(seed):
    rng = np.random.default_rng(seed)
    reviews = rng.integers(20, WORDS, (1200, 24))  # 1 to 9 praise, 10 to 18 complain, others say nothing
    good = rng.integers(0, 2, 1200)
    lengths = rng.integers(6, 25, 1200)
    for review, is_good, length in zip(reviews, good, lengths, strict=True):
        places = rng.choice(length, 3, replace=False)
        review[places] = rng.integers(1, 10, 3) + 9 * (1 - is_good)
        review[length:] = 0
    return reviews.astype("int32"), good


def build():
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(WORDS, 16, mask_zero=True),
            layers.Bidirectional(layers.LSTM(16)),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    return model
