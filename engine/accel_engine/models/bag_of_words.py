"""A classifier of texts by which words and pairs of words they have."""

from collections import Counter
from collections.abc import Iterable

import keras
from keras import layers

from accel_engine.data.tables.preprocessing import words_of
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
        WORDS, output_mode="multi_hot", ngrams=2, pad_to_max_tokens=True, vocabulary=words, dtype="float32"
    )
    x = layers.Reshape((WORDS,))(vectorize(texts))
    x = layers.Dropout(0.5)(layers.Dense(UNITS, activation="relu")(x))
    return keras.Model(texts, output(x, data), name="bag-of-words")


def frequent_words(texts: Iterable[str | bytes], limit: int, ngrams: int = 1) -> list[str]:
    """The words in most texts, the most frequent first; equally frequent ones in the order of the alphabet.

    A word that only one text has tells nothing about others, and is left out.

    Args:
        texts: The texts.
        limit: Number of words at most.
        ngrams: Number of consecutive words that count as a word, too.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        words = words_of(text.decode() if isinstance(text, bytes) else text)
        found = set(words)
        for size in range(2, ngrams + 1):
            found.update(" ".join(words[start : start + size]) for start in range(len(words) - size + 1))
        counts.update(found)
    frequent = (word for word, count in counts.items() if count > 1)
    return sorted(frequent, key=lambda word: (-counts[word], word))[:limit]
