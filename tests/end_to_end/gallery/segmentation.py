"""Finds the class of each pixel with a small U-Net."""

import keras
from keras import layers


def block(x, filters):
    return layers.Conv2D(filters, 3, padding="same", activation="relu")(x)


def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    full = block(layers.Rescaling(1 / 255)(inputs), 8)
    half = block(layers.MaxPooling2D()(full), 16)
    x = block(layers.MaxPooling2D()(half), 32)
    x = block(layers.Concatenate()([layers.UpSampling2D()(x), half]), 16)
    x = block(layers.Concatenate()([layers.UpSampling2D()(x), full]), 8)
    model = keras.Model(inputs, layers.Conv2D(classes, 1, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
