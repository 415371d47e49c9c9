"""Writes text: predicts each character from those before it."""

import keras
from keras import layers, ops


class TokensAndPositions(layers.Layer):
    """The sum of a vector for each token and one for each position."""

    def __init__(self, tokens, length, width):
        super().__init__()
        self.tokens, self.positions = layers.Embedding(tokens, width), layers.Embedding(length, width)

    def call(self, x):
        return self.tokens(x) + self.positions(ops.arange(ops.shape(x)[1]))


def build(input_shape, vocabulary):
    inputs = keras.Input(input_shape, dtype="int32")
    x = TokensAndPositions(len(vocabulary), input_shape[0], 48)(inputs)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 24)(x, x, use_causal_mask=True))
        x = layers.LayerNormalization()(x + layers.Dense(48)(layers.Dense(96, activation="relu")(x)))
    model = keras.Model(inputs, layers.Dense(len(vocabulary))(x))
    model.compile(keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
