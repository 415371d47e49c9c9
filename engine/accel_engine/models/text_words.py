"""Finds the words of training texts, as Keras' ``TextVectorization`` splits them; without TensorFlow."""

from collections import Counter
from collections.abc import Iterable

from accel_engine.data.tables.preprocessing import standardize_text


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
        words = standardize_text(text.decode() if isinstance(text, bytes) else text).split()
        found = set(words)
        for size in range(2, ngrams + 1):
            found.update(" ".join(words[start : start + size]) for start in range(len(words) - size + 1))
        counts.update(found)
    frequent = (word for word, count in counts.items() if count > 1)
    return sorted(frequent, key=lambda word: (-counts[word], word))[:limit]
