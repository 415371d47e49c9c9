"""Texts as tokens: the characters of training data, whose vocabulary follows from them, and what a model continues."""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import Progress
from accel_engine.errors import DataError, FieldValue, join_words
from accel_engine.text import suggestion

UNKNOWN = "\ufffd"
"""The text of the token of characters that are not in the training part."""

BYTES = tuple(chr(byte) if byte < 0x80 else f"<0x{byte:02X}>" for byte in range(256))
"""The text of each byte."""

CHUNK = 1 << 22
"""Bytes that are decoded at a time."""

UTF_8 = "utf-8-sig"
"""The encoding of texts without a byte order mark, which UTF-8 may have, too."""

WESTERN = "cp1252"
"""The encoding of texts that are not UTF-8, unless they have a byte order mark."""

_NO_TOKEN = np.iinfo(np.uint16).max

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the byte order mark that a file begins with; the first one counts."""


class CharacterEncoder:
    """Gives every character of the training part a token, and all others one token together.

    Args:
        replace: Whether bytes that are not UTF-8 become the character :data:`UNKNOWN`; otherwise they are
            an error.

    Attributes:
        characters: The characters of the training part, in the order of their tokens.
        unknown: How often each character that is not in the training part was encoded.
        replaced: Number of characters of counted files that replace bytes.
    """

    def __init__(self, *, replace: bool = False) -> None:
        self.characters: list[str] = []
        self.unknown: Counter[str] = Counter()
        self.replaced = 0
        self._replace = replace
        self._tokens = np.full(0x110000, _NO_TOKEN, np.uint16)  # by code point

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token; the last one is of unknown characters, if there were any."""
        return (*self.characters, UNKNOWN) if self.unknown else tuple(self.characters)

    def count(self, path: Path) -> int:
        """Number of characters of a file.

        Raises:
            DataError: The file cannot be read, or is not UTF-8.
        """
        characters = 0
        for text in read_texts(path, replace=self._replace):
            characters += len(text)
            self.replaced += text.count(UNKNOWN) if self._replace else 0
        return characters

    def encode(self, path: Path, length: int, learned: int, progress: Progress) -> npt.NDArray[np.uint16]:
        """Encode a file.

        Args:
            path: The file.
            length: Its number of characters.
            learned: Number of characters at its start that are the training part.
            progress: Reports the number of characters.

        Raises:
            DataError: The file cannot be read, changed since it was counted, or has too many different characters.
        """
        tokens = np.empty(length, np.uint16)
        done = 0
        for text in read_texts(path, replace=self._replace):
            codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
            if done + len(codes) > length:
                break
            border = min(max(0, learned - done), len(codes))
            self._learn(codes[:border])
            tokens[done : done + len(codes)] = self._lookup(codes)
            done += len(codes)
            progress(done, length)
        if done != length:
            raise DataError(f"{path} changed while it was read")
        return tokens

    def _learn(self, codes: npt.NDArray[np.uint32]) -> None:
        new = np.unique(codes[self._tokens[codes] == _NO_TOKEN])
        count = len(self.characters)
        if count + len(new) >= _NO_TOKEN:
            tokenizer = FieldValue("tokenizer", "bytes")
            raise DataError(join_words((f"the text has over {_NO_TOKEN:,} different characters; use ", tokenizer)))
        self._tokens[new] = np.arange(count, count + len(new), dtype=np.uint16)
        self.characters += map(chr, new.tolist())

    def _lookup(self, codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        tokens = self._tokens[codes]
        unknown = tokens == _NO_TOKEN
        if unknown.any():
            found, counts = np.unique(codes[unknown], return_counts=True)
            self.unknown.update(dict(zip(map(chr, found.tolist()), counts.tolist(), strict=True)))
            tokens[unknown] = len(self.characters)
        return tokens


def encoding_of(start: bytes) -> str:
    """The encoding of a text, from its first four bytes: UTF-8 unless a byte order mark or a 0 says another."""
    default = UTF_8 if b"\0" not in start else "utf-16-be" if start.startswith(b"\0") else "utf-16-le"
    return next((encoding for mark, encoding in _MARKS.items() if start.startswith(mark)), default)


def decoded(content: bytes, name: str) -> tuple[str, str]:
    """A text and its encoding: the one that its first bytes tell, else UTF-8, else Windows-1252.

    Args:
        content: The bytes of a file.
        name: What it is called in messages.

    Raises:
        DataError: A byte is not valid in the encoding.
    """
    encoding = encoding_of(content[:4])
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError as error:
        if encoding == UTF_8 and b"\0" not in content:
            with suppress(UnicodeDecodeError):
                return content.decode(WESTERN), WESTERN
        line = content[: error.start].count(b"\n") + 1
        where = f"line {line} has an invalid byte (position {error.start})"
        raise DataError(f"{name} is not {encoding_name(encoding)}: {where}") from error


def encoding_name(encoding: str) -> str:
    """The usual name of an encoding."""
    return "Windows-1252" if encoding == WESTERN else encoding.removesuffix("-sig").upper()


def read_texts(path: Path, *, replace: bool = False, chunk: int | None = None) -> Iterator[str]:
    """Decode a text file in chunks of some bytes, :data:`CHUNK` by default; of an empty file, yield an empty text.

    Raises:
        DataError: The file cannot be read, or has bytes that are invalid in its encoding and not replaced.
    """
    done, line = 0, 1
    try:
        with path.open("rb") as file:
            decoder = codecs.getincrementaldecoder(encoding_of(file.read(4)))("replace" if replace else "strict")
            file.seek(0)
            while content := file.read(chunk or CHUNK):
                done += len(content)
                text = decoder.decode(content)
                line += text.count("\n")
                yield text
            yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        position, line = done - len(error.object) + error.start, line + error.object[: error.start].count(b"\n")
        place = f"{path} is not UTF-8 at byte {position:,}, in line {line:,}: save it as UTF-8"
        skip, read = FieldValue("invalid_examples", "skip"), FieldValue("tokenizer", "bytes")
        raise DataError(f"{place} ({skip} replaces what is not UTF-8, {read} reads bytes)") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error


_UNKNOWN_TOKENS = (UNKNOWN, "[UNK]", "<unk>", "<UNK>")
"""Names of the token for texts that are not in a vocabulary."""


def tokens_of_text(text: str, vocabulary: Sequence[str]) -> list[int]:
    """Encode a text as tokens: bytes, characters, or words between spaces, whichever the vocabulary has.

    Raises:
        DataError: The text has no tokens, or one that is not in the vocabulary, which has no token for unknown ones.
    """
    if not text:
        raise DataError("the prompt is empty: the model continues at least one token")
    if tuple(vocabulary) == BYTES:
        return list(text.encode())
    parts = list(text) if _of_characters(vocabulary) else text.split()
    places = {token: place for place, token in enumerate(vocabulary)}
    unknown = next((places[token] for token in _UNKNOWN_TOKENS if token in places), None)
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


def texts_of_tokens(tokens: Iterable[int], vocabulary: Sequence[str]) -> Iterator[str]:
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
