"""Finds the box of an object, and whether it is filled: two outputs with a loss each, from ``tf.data``."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def load(batch_size, seed):
    rng = np.random.default_rng(seed)
    corners, sizes = rng.integers(0, 8, (1200, 2)), rng.integers(4, 8, (1200, 2))
    filled = rng.integers(0, 2, 1200)
    images = np.zeros((1200, 16, 16, 1), "float32")
    for image, (top, left), (height, width), full in zip(images, corners, sizes, filled, strict=True):
        image[top : top + height, left : left + width] = 1
        if not full:
            image[top + 1 : top + height - 1, left + 1 : left + width - 1] = 0
    boxes = np.concatenate([corners, corners + sizes], axis=1).astype("float32") / 16
    examples = tf.data.Dataset.from_tensor_slices((images, {"box": boxes, "filled": filled[:, None]}))
    train = examples.take(1000).shuffle(1000, seed=seed).batch(batch_size)
    return train, examples.skip(1000).batch(batch_size)


def build():
    inputs = keras.Input((16, 16, 1))
    x = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Dense(64, activation="relu")(layers.Flatten()(x))
    outputs = {
        "box": layers.Dense(4, name="box")(x),
        "filled": layers.Dense(1, activation="sigmoid", name="filled")(x),
    }
    model = keras.Model(inputs, outputs)
    model.compile(
        keras.optimizers.Adam(3e-3),
        loss={"box": "huber", "filled": "binary_crossentropy"},
        loss_weights={"box": 10.0, "filled": 1.0},
        metrics={"box": ["mean_absolute_error"], "filled": ["accuracy"]},
    )
    return model
