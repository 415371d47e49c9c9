"""Classifies series of measurements by attention among their parts."""

import keras
from keras import layers


def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Conv1D(32, 4, strides=4, activation="relu")(inputs)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation="relu")(x)))
    x = layers.GlobalMaxPooling1D()(x)
    model = keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
