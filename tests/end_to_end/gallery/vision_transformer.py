"""Classifies digits by attention among 16 patches of 2x2 pixels."""

import keras
from keras import layers


class Positions(layers.Layer):
    """Adds a learned vector for each position."""

    def build(self, shape):
        self.vectors = self.add_weight(shape=shape[1:], initializer="random_normal")

    def call(self, x):
        return x + self.vectors


def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Conv2D(32, 2, strides=2)(inputs)
    x = Positions()(layers.Reshape((-1, 32))(x))
    for _ in range(2):
        normal = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(2, 16)(normal, normal)])
        hidden = layers.Dense(64, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(32)(hidden)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    model = keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))
    model.compile(keras.optimizers.AdamW(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
