"""Classifies clouds of points, in any order, as balls, boxes or rings."""

import keras
import numpy as np
from keras import layers, ops


def load(seed):
    rng = np.random.default_rng(seed)
    balls = rng.normal(size=(300, 64, 3))
    balls /= np.linalg.norm(balls, axis=-1, keepdims=True)
    boxes = rng.uniform(-1, 1, (300, 64, 3))
    boxes /= np.abs(boxes).max(axis=-1, keepdims=True)
    angle = rng.uniform(0, 2 * np.pi, (300, 64))
    rings = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
    clouds = np.concatenate([balls, boxes, rings]) + rng.normal(0, 0.02, (900, 64, 3))
    return clouds.astype("float32"), np.arange(3).repeat(300)


class Orthogonal(keras.regularizers.Regularizer):
    """Keeps learned 3x3 transformations near rotations."""

    def __call__(self, x):
        matrices = ops.reshape(x, (-1, 3, 3))
        product = ops.matmul(matrices, ops.transpose(matrices, (0, 2, 1)))
        return 1e-3 * ops.mean(ops.square(product - ops.eye(3)))


def build():
    points = keras.Input((64, 3))
    x = layers.GlobalMaxPooling1D()(layers.Conv1D(16, 1, activation="relu")(points))
    turn = layers.Dense(
        9,
        kernel_initializer="zeros",
        bias_initializer=keras.initializers.Constant(np.eye(3).ravel()),
        activity_regularizer=Orthogonal(),
    )(x)
    x = layers.Dot((2, 1))([points, layers.Reshape((3, 3))(turn)])
    x = layers.Conv1D(64, 1, activation="relu")(layers.Conv1D(32, 1, activation="relu")(x))
    x = layers.Dense(32, activation="relu")(layers.GlobalMaxPooling1D()(x))
    model = keras.Model(points, layers.Dense(3, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
