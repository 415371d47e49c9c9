"""Mixes pairs of images and of their labels in ``tf.data``: targets are probabilities."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def load(batch_size, seed):
    digits = np.load(Path(__file__).with_name("digits.npz"))
    images = digits["images"].reshape(-1, 64).astype("float32") / 16
    labels = np.eye(10, dtype="float32")[digits["labels"]]
    train = tf.data.Dataset.from_tensor_slices((images[:1500], labels[:1500]))
    pairs = tf.data.Dataset.zip(train.shuffle(1500, seed=seed), train.shuffle(1500, seed=seed + 1))
    share = tf.data.Dataset.random(seed=seed).map(lambda bits: 0.4 * tf.cast(bits, tf.float32) / 2.0**32)

    def mix(one, other, part):
        return tuple((1 - part) * left + part * right for left, right in zip(one, other, strict=True))

    mixed = tf.data.Dataset.zip(pairs, share).map(lambda pair, part: mix(*pair, part))
    return mixed.batch(batch_size), (images[1500:], labels[1500:])


def build():
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10, "softmax")])
    model.compile(keras.optimizers.Adam(3e-3), "categorical_crossentropy", metrics=["accuracy"])
    return model
