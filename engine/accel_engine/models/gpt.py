"""A small language model: a transformer with causal self-attention.

In the size of nanoGPT's setting for CPUs, which follows Radford et al., "Language Models are Unsupervised Multitask
Learners" (2019): normalization before each part, weights of standard deviation 0.02, and less for those that are added
to the residual stream.
"""

import math

import keras
from keras import initializers, layers, ops

from accel_engine.models.data_description import DataDescription

LAYERS = 4
HEADS = 4
WIDTH = 128
DEVIATION = 0.02
"""Standard deviation of the initial weights."""


def build(data: DataDescription) -> keras.Model:
    """Build the model: 0.82 million weights for blocks of 64 tokens of a vocabulary of 65.

    Args:
        data: Tokens ``[tokens]`` with their vocabulary.

    Returns:
        An uncompiled model from tokens to the probabilities of the next one, float32 ``[batch, tokens, vocabulary]``;
        with class names, to the class of each token.
    """
    tokens = keras.Input(data.shape, dtype="int32")
    window = (data.shape or (0,))[0] or 0
    positions = ops.cumsum(ops.ones_like(tokens), axis=1) - 1
    embedded = layers.Embedding(len(data.vocabulary), WIDTH, _normal())(tokens)
    x = layers.Add()([embedded, layers.Embedding(window, WIDTH, _normal())(positions)])
    for _ in range(LAYERS):
        x = _block(x)
    x = layers.LayerNormalization()(x)
    outputs = layers.Dense(data.output_size, activation="softmax", kernel_initializer=_normal(), dtype="float32")(x)
    return keras.Model(tokens, outputs, name="gpt")


def _block(x: keras.KerasTensor) -> keras.KerasTensor:
    """Attention to this and earlier tokens, then two dense layers; both are added to their input."""
    normalized = layers.LayerNormalization()(x)
    attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, kernel_initializer=_normal())
    x = layers.Add()([x, attention(normalized, normalized, use_causal_mask=True)])
    hidden = layers.Dense(4 * WIDTH, "gelu", kernel_initializer=_normal())(layers.LayerNormalization()(x))
    return layers.Add()([x, layers.Dense(WIDTH, kernel_initializer=_normal(residual=True))(hidden)])


def _normal(*, residual: bool = False) -> initializers.Initializer:
    return initializers.RandomNormal(stddev=DEVIATION / math.sqrt(2 * LAYERS) if residual else DEVIATION)
