"""A classifier of texts by which words and pairs of words they have."""

import keras
from keras import layers

from accel_engine.data.tables.preprocessing import frequent_words
from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output

WORDS = 20_000
"""Words and pairs of words at most; the rarest beyond them are one."""

UNITS = 32


def build(data: DataDescription) -> keras.Model:
    """Build the model; the number of its weights does not depend on the texts.

    Args:
        data: Texts.

    Returns:
        An uncompiled model from texts, string ``[batch]``, to :func:`~accel_engine.models.outputs.output`.
    """
    words = frequent_words(data.texts if data.texts is not None else ("words words", "words words"), WORDS - 1, 2)
    texts = keras.Input(data.shape, dtype="string")
    vectorize = layers.TextVectorization(
        WORDS, output_mode="multi_hot", ngrams=2, pad_to_max_tokens=True, vocabulary=list(words), dtype="float32"
    )
    x = layers.Reshape((WORDS,))(vectorize(texts))
    x = layers.Dropout(0.5)(layers.Dense(UNITS, activation="relu")(x))
    return keras.Model(texts, output(x, data), name="bag-of-words")
