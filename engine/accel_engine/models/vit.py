"""A small vision transformer.

After Dosovitskiy et al., "An Image is Worth 16x16 Words" (2020), with averaged tokens instead of a class token.
"""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output

WIDTH = 96
BLOCKS = 4
HEADS = 4
PATCHES = 8
"""Patches on the longer side of an image, at most."""


def build(data: DataDescription) -> keras.Model:
    """Build the model.

    Args:
        data: Images ``[height, width, channels]``, at least 8x8; a margin that does not fill a patch is left out.

    Returns:
        An uncompiled model from images to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    side = -(-max(inputs.shape[1:3]) // PATCHES)
    x = layers.Conv2D(WIDTH, side, strides=side)(inputs)
    count = x.shape[1] * x.shape[2]
    x = layers.Reshape((count, WIDTH))(x)
    # Its bias for each patch is the embedding of the position.
    x = layers.EinsumDense("btc,cd->btd", (count, WIDTH), bias_axes="td")(x)
    for _ in range(BLOCKS):
        normalized = layers.LayerNormalization()(x)
        attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=0.1)
        x = layers.Add()([x, attention(normalized, normalized)])
        hidden = layers.Dense(2 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dropout(0.1)(layers.Dense(WIDTH)(hidden))])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(inputs, output(x, data), name="vit")
