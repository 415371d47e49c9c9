"""A convolutional classifier of texts.

After Kim, "Convolutional Neural Networks for Sentence Classification" (2014), with embeddings that are learned.
"""

import keras
from keras import layers

from accel_engine.data.tables.preprocessing import frequent_words
from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output

WORDS = 20_000
"""Words at most, with one for no word and one for unknown words."""

LENGTH = 500
"""Words of a text that count, from its start."""

WIDTH = 128


def build(data: DataDescription) -> keras.Model:
    """Build the model; the number of its weights does not depend on the texts.

    Args:
        data: Texts.

    Returns:
        An uncompiled model from texts, string ``[batch]``, to :func:`~accel_engine.models.outputs.output`.
    """
    words = frequent_words(data.texts if data.texts is not None else ("words", "words"), WORDS - 2)
    texts = keras.Input(data.shape, dtype="string")
    x = layers.TextVectorization(WORDS, output_sequence_length=LENGTH, vocabulary=list(words))(texts)
    x = layers.Embedding(WORDS, WIDTH)(layers.Reshape((LENGTH,))(x))
    x = layers.Dropout(0.5)(x)
    windows = [layers.Conv1D(WIDTH, size, activation="relu")(x) for size in (3, 5)]
    x = layers.Concatenate()([layers.GlobalMaxPooling1D()(each) for each in windows])
    x = layers.Dropout(0.5)(layers.Dense(WIDTH, activation="relu")(x))
    return keras.Model(texts, output(x, data), name="text-cnn")
