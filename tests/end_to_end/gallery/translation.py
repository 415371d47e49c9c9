"""Translates sentences with a transformer; padding is masked, and does not count."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

WORDS, LENGTH = 20, 6


def load(batch_size, seed):
    rng = np.random.default_rng(seed)
    source = rng.integers(2, WORDS, (1400, LENGTH))
    source[np.arange(LENGTH) >= rng.integers(3, LENGTH + 1, (1400, 1))] = 0
    target = np.where(source > 0, (source + 5) % (WORDS - 2) + 2, 0)  # each word has another name
    given = np.concatenate([np.ones((1400, 1), int), target[:, :-1]], axis=1) * (target > 0)  # 1 starts a sentence
    examples = tf.data.Dataset.from_tensor_slices(({"source": source, "given": given}, target))
    return {
        "train": examples.take(1200).shuffle(1200, seed=seed).batch(batch_size),
        "validation": examples.skip(1200).batch(batch_size),
    }


def embed(x):
    return layers.Embedding(WORDS, 32, mask_zero=True)(x)


class Positions(layers.Layer):
    """Adds a learned vector for each position."""

    supports_masking = True

    def build(self, shape):
        self.vectors = self.add_weight(shape=(LENGTH, 32), initializer="random_normal")

    def call(self, x):
        return x + self.vectors


def build():
    source = keras.Input((LENGTH,), dtype="int32", name="source")
    given = keras.Input((LENGTH,), dtype="int32", name="given")
    known = Positions()(embed(source))
    known = layers.LayerNormalization()(known + layers.MultiHeadAttention(2, 16)(known, known))
    x = Positions()(embed(given))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, known))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation="relu")(x)))
    model = keras.Model([source, given], layers.Dense(WORDS, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    return model
