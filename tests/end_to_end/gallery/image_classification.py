"""Classifies photos of a folder, which are augmented and scaled in the model."""

import keras
from keras import layers


def build(input_shape, classes):
    model = keras.Sequential(
        [
            keras.Input(input_shape),
            layers.RandomFlip(seed=1),
            layers.Rescaling(1 / 255),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.SeparableConv2D(32, 3, activation="relu"),
            layers.BatchNormalization(momentum=0.8),
            layers.GlobalMaxPooling2D(),
            layers.Dense(classes),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    return model
