"""Classifies series of measurements by their shape."""

import keras
from keras import layers


def build(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape)])
    for _ in range(2):
        model.add(layers.Conv1D(16, 5, padding="same"))
        model.add(layers.BatchNormalization(momentum=0.8))
        model.add(layers.ReLU())
    model.add(layers.GlobalAveragePooling1D())
    model.add(layers.Dense(classes, activation="softmax"))
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
