"""Predicts how a user rates a film from a vector for each."""

import keras
import numpy as np
from keras import layers, ops


def load(seed):
    rng = np.random.default_rng(seed)
    users, films = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    pairs = np.stack([rng.integers(0, 60, 6000), rng.integers(0, 40, 6000)], axis=1)
    ratings = 1 / (1 + np.exp(-2 * (users[pairs[:, 0]] * films[pairs[:, 1]]).sum(-1)))
    return pairs.astype("int32"), ratings.astype("float32")


class Recommender(keras.Model):
    """The scalar product of a user's and a film's vectors, and a bias for each."""

    def __init__(self):
        super().__init__()
        self.users, self.films = layers.Embedding(60, 8), layers.Embedding(40, 8)
        self.user_bias, self.film_bias = layers.Embedding(60, 1), layers.Embedding(40, 1)

    def call(self, pairs):
        user, film = pairs[:, 0], pairs[:, 1]
        match = ops.sum(self.users(user) * self.films(film), axis=-1, keepdims=True)
        return ops.sigmoid(match + self.user_bias(user) + self.film_bias(film))


def build():
    model = Recommender()
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["mean_absolute_error"])
    return model
