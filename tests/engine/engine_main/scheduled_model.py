"""A user's model with random numbers, moving averages, and a learning rate that follows its own schedule."""

import keras
import numpy as np
from keras import layers


def schedule():
    """The schedule of the model's optimizer."""
    return keras.optimizers.schedules.CosineDecay(0.001, decay_steps=70, warmup_target=0.01, warmup_steps=20)


def rates(steps):
    """The learning rate of each step."""
    decay = schedule()
    return np.array([float(decay(step)) for step in range(steps)])


def build(input_shape, classes):
    return compiled(input_shape, layers.BatchNormalization(), layers.Dropout(0.2), classes=classes)


def without_dropout(input_shape, classes):
    """The same, whose losses do not depend on how a batch is divided."""
    return compiled(input_shape, classes=classes)


def compiled(input_shape, *hidden, classes):
    parts = [keras.Input(input_shape), layers.Flatten(), layers.Dense(32, activation="relu"), *hidden]
    model = keras.Sequential([*parts, layers.Dense(classes, activation="softmax")])
    model.compile(keras.optimizers.SGD(schedule()), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
