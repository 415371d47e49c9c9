"""Models and data of the benchmark of training, as a user would write them: each is compiled and fits its data.

Only the stream imports TensorFlow, so that the models can be built on Keras' JAX backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import numpy as np
from keras import layers

if TYPE_CHECKING:
    import tensorflow as tf

ROWS, COLUMNS = 20_000, 14


def tabular() -> tuple[np.ndarray, np.ndarray]:
    """Rows of a table with two classes."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, COLUMNS)).astype("float32")
    return x, (x[:, :3].sum(axis=1) > 0).astype("int32")


def tabular_stream() -> tf.data.Dataset:
    """The same rows as batches of a stream."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(tabular()).batch(128, drop_remainder=True).prefetch(2)


def regularized_mlp_model() -> keras.Model:
    """A perceptron with batch normalization and dropout after its hidden layer, for images of 28x28 in 10 classes."""
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.2),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def tabular_model() -> keras.Model:
    """A perceptron with two hidden layers."""
    model = keras.Sequential(
        [
            keras.Input((COLUMNS,)),
            layers.Dense(64, activation="relu"),
            layers.Dense(64, activation="relu"),
            layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def rows_of_images() -> tuple[np.ndarray, np.ndarray]:
    """Sequences of 28 steps of 28 values in 10 classes."""
    generator = np.random.default_rng(0)
    return generator.normal(size=(3_200, 28, 28)).astype("float32"), generator.integers(0, 10, 3_200, "int32")


def lstm_model() -> keras.Model:
    """An LSTM of 64 units."""
    model = keras.Sequential([keras.Input((28, 28)), layers.LSTM(64), layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def tokens() -> tuple[np.ndarray, np.ndarray]:
    """Sequences of 32 tokens of 64, and the tokens that follow."""
    text = np.random.default_rng(0).integers(0, 64, (1_600, 33), "int32")
    return text[:, :-1], text[:, 1:]


def gpt_model() -> keras.Model:
    """A transformer of 2 layers of width 64."""
    inputs = keras.Input((32,), dtype="int32")
    x = layers.Embedding(64, 64)(inputs)
    for _ in range(2):
        attention = layers.MultiHeadAttention(4, 16)(*[layers.LayerNormalization()(x)] * 2, use_causal_mask=True)
        x = x + attention
        hidden = layers.Dense(256, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(64)(hidden)
    model = keras.Model(inputs, layers.Dense(64)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def masks() -> tuple[np.ndarray, np.ndarray]:
    """Images of 32x32 with a class for each pixel."""
    images = np.random.default_rng(0).random((640, 32, 32, 1), "float32")
    return images, (images[..., 0] > 0.5).astype("int32")


def unet_model() -> keras.Model:
    """A small U-Net with two levels."""
    inputs = keras.Input((32, 32, 1))
    first = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    second = layers.Conv2D(32, 3, padding="same", activation="relu")(layers.MaxPooling2D()(first))
    joined = layers.Concatenate()([layers.UpSampling2D()(second), first])
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(joined)
    model = keras.Model(inputs, layers.Conv2D(2, 1, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
