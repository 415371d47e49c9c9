"""Texts as tokens of a vocabulary, and back; without TensorFlow."""

import codecs
from collections.abc import Iterable, Iterator, Sequence

from accel_engine.data.texts.characters import BYTES, UNKNOWN
from accel_engine.errors import DataError
from accel_engine.text import suggestion

_UNKNOWN = (UNKNOWN, "[UNK]", "<unk>", "<UNK>")
"""Tokens that stand for those that are not in a vocabulary."""


def encoded(text: str, vocabulary: Sequence[str]) -> list[int]:
    """The tokens of a text: bytes, characters, or words between spaces, whichever the vocabulary has.

    Raises:
        DataError: It has none, or the vocabulary lacks one and has no token for those.
    """
    if not text:
        raise DataError("the prompt is empty: the model continues at least one token")
    if tuple(vocabulary) == BYTES:
        return list(text.encode())
    parts = list(text) if _of_characters(vocabulary) else text.split()
    places = {token: place for place, token in enumerate(vocabulary)}
    unknown = next((places[token] for token in _UNKNOWN if token in places), None)
    tokens = []
    for part in parts:
        place = places.get(part, unknown)
        if place is None:
            hint = "" if len(part) == 1 else f"; {suggestion(part, vocabulary)}"
            raise DataError(f"{part!r} of the prompt is not in the vocabulary of the run{hint}")
        tokens.append(place)
    if not tokens:
        raise DataError("the prompt has no words")
    return tokens


def decoded(tokens: Iterable[int], vocabulary: Sequence[str]) -> Iterator[str]:
    """The text of each token, as soon as it is complete: a character may have several bytes."""
    if tuple(vocabulary) == BYTES:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield from filter(None, (decoder.decode(bytes([token])) for token in tokens))
        if rest := decoder.decode(b"", final=True):
            yield rest
        return
    space = "" if _of_characters(vocabulary) else " "
    for token in tokens:
        yield f"{space}{vocabulary[token]}"


def _of_characters(vocabulary: Sequence[str]) -> bool:
    """Whether tokens follow each other without spaces between: words need them, characters do not."""
    return any(token.isspace() for token in vocabulary) or all(len(token) <= 1 for token in vocabulary)
