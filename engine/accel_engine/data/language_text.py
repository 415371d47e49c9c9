"""Describes and reads a text file for language models: blocks of tokens, and the same tokens one later.

Blocks follow each other and do not overlap. So an epoch predicts no token twice, and no token of one split is in
another. Each part leaves out its first token, and at its end the tokens that do not fill a block.
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.characters import BYTES, UNKNOWN, CharacterEncoder, read_texts
from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.dataset import Dataset, LazyRows, Split, make_if_small
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.source import DatasetEntry, EntryColumn, Source
from accel_engine.data.splits import choose_split, split_counts
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import DataError, FieldValue, PlanError, file_errors
from accel_engine.user_paths import is_file, user_path
from accel_engine.words import numbers

_COUNTED = 1 << 26
"""Bytes of the largest file whose characters are counted to describe it, which takes some tenths of a second."""

_START = 1 << 20
"""Bytes at the start of the file whose characters are looked at."""

_SAMPLE = 240
"""Characters of the sample."""

_LISTED = 8
"""Maximum number of unknown characters that are listed."""

_Tokens: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


class LanguageText(Source):
    """A text file whose characters or bytes are tokens."""

    takes_window = has_tokens = True

    @cached_property
    def _replaces(self) -> bool:
        return self.options.invalid_examples == "skip"

    def describe(self) -> DatasetEntry:
        """Complete the entry with the number of tokens and of examples, and the characters at the start of the file."""
        window = _tokens_per_example(self.options)
        is_of_characters = self.options.tokenizer == "characters"
        start = next(read_texts(self.path, replace=self._replaces or not is_of_characters, chunk=_START))
        tokens = self._count(self.path)
        counts: list[int | None] = [None, None, None]
        if tokens is not None:
            counts = [_block_count(part, window) for part in _divide_tokens(tokens, self.options)]
        if other := _validation_path(self.options):
            other_tokens = self._count(other)
            if other_tokens is not None:
                _check_validation(other_tokens, self.options)
            counts[1] = other_tokens and _block_count(other_tokens, window)
        number = "many" if tokens is None else f"{tokens:,}"
        different = f", {len(set(start)):,} different ones at the start" if is_of_characters else ""
        detail = f"{number} {self.options.tokenizer}{different}"
        spec = ArraySpec((window,), "int32")
        return replace(
            self.entry,
            kind="tokens",
            task="sequence",
            shape=(window,),
            classes=0,
            spec=Batch(spec, spec),
            value_range=ValueRange("int32"),
            examples=counts[0],
            validation_examples=counts[1],
            test_examples=counts[2],
            columns=(EntryColumn("text", self.options.tokenizer, "input", None, detail),),
            samples=(("start", start[:_SAMPLE]),),
        )

    def load(self, progress: Progress) -> Dataset:
        """Read the file's tokens, in blocks that do not overlap."""
        options = self.options
        read = self._read_bytes if options.tokenizer == "bytes" else self._read_characters
        tokens, other, vocabulary, changes = read(_validation_path(options), progress)
        parts = np.split(tokens, np.cumsum(_divide_tokens(len(tokens), options))[:2])
        if other is not None:
            _check_validation(len(other), options)
            parts[1] = other
        names = ("training", "validation", "test")
        counts = ", ".join(f"{len(part):,} {name}" for part, name in zip(parts, names, strict=True) if len(part))
        blocks = f"blocks of {_tokens_per_example(options)} {options.tokenizer}"
        train, validation, test = make_if_small([_block_split(part, options) for part in parts])
        return Dataset(
            self.entry.name,
            train,
            validation if len(validation) else None,
            test if len(test) else None,
            task="sequence",
            kind="tokens",
            vocabulary=vocabulary,
            value_range=ValueRange("int32"),
            notes=(
                f"{counts} {options.tokenizer}, a vocabulary of {len(vocabulary):,}",
                f"{blocks} do not overlap: an epoch predicts each once",
            ),
            changes=changes,
        )

    def _count(self, path: Path) -> int | None:
        """Number of tokens of a file; ``None`` for characters of a very large one, which would have to be read."""
        with file_errors(str(path), DataError):
            size = path.stat().st_size
        if self.options.tokenizer == "bytes":
            return size
        return None if size > _COUNTED else sum(map(len, read_texts(path, replace=self._replaces)))

    def _read_bytes(self, validation: Path | None, progress: Progress) -> "_Read":
        try:
            tokens = np.fromfile(self.path, np.uint8)
            return tokens, np.fromfile(validation, np.uint8) if validation else None, BYTES, ()
        except OSError as error:
            raise DataError(f"{error.filename or self.path}: {error.strerror}") from error

    def _read_characters(self, validation: Path | None, progress: Progress) -> "_Read":
        encoder = CharacterEncoder(replace=self._replaces)
        length = encoder.count(self.path)
        tokens = encoder.encode(self.path, length, _divide_tokens(length, self.options)[0], progress)
        has_unknown = bool(encoder.unknown)
        other = encoder.encode(validation, encoder.count(validation), 0, no_progress) if validation else None
        # Without a share for validation, the trained model may have had such characters in validation data of its own.
        if self.options.keeps_split and self.options.validation_split and encoder.unknown and not has_unknown:
            shown = _listed(encoder)
            raise DataError(f"{validation} has characters for which the trained model has no token: {shown}")
        return tokens, other, encoder.vocabulary, tuple(_changes(encoder))


_Read: TypeAlias = tuple[_Tokens, _Tokens | None, tuple[str, ...], tuple[Change, ...]]
"""The tokens of the text, and of the one for validation, the vocabulary, and what was changed."""


def _listed(encoder: CharacterEncoder) -> str:
    """The unknown characters, the most frequent ones first."""
    return numbers.listed((repr(character) for character, _ in encoder.unknown.most_common()), _LISTED)


def _changes(encoder: CharacterEncoder) -> list[Change]:
    changes = []
    if encoder.unknown:
        detail = f"to the token {UNKNOWN}, as the training part has none of them: {_listed(encoder)}"
        changes.append(Change("converted", "characters", encoder.unknown.total(), detail=detail))
    if encoder.replaced:
        changes.append(Change("converted", "bytes outside UTF-8", encoder.replaced, detail=f"to {UNKNOWN}"))
    return changes


class _TokenBlocks(LazyRows):
    """Blocks of tokens, int32 ``[examples, window]``, made when they are read.

    Args:
        tokens: Tokens of a type that takes less memory, ``[tokens]``.
        window: Tokens of a block.
        shift: Number of tokens before the first block.
    """

    dtype = np.dtype(np.int32)

    def __init__(self, tokens: _Tokens, window: int, shift: int) -> None:
        self.shape = (_block_count(len(tokens), window), window)
        self._blocks = tokens[shift : shift + self.shape[0] * window].reshape(self.shape)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Copy some blocks, ``[len(rows), window]``."""
        return self._blocks[rows].astype(np.int32)


def _tokens_per_example(options: DataOptions) -> int:
    return options.window or 64


def _block_count(tokens: int, window: int) -> int:
    """Number of examples of a part of a text: each needs one token more than its window."""
    return max(0, tokens - 1) // window


def _block_split(tokens: _Tokens, options: DataOptions) -> Split:
    """The examples of a part of a text."""
    window = _tokens_per_example(options)
    return Split(_TokenBlocks(tokens, window, 0), _TokenBlocks(tokens, window, 1))


def _divide_tokens(tokens: int, options: DataOptions) -> tuple[int, int, int]:
    """Number of tokens in the training, validation and test part of a text, which follow each other.

    Raises:
        PlanError: The split does not fit a text, or a part is too short for an example.
    """
    window = _tokens_per_example(options)
    choose_split(options, ordered=True)
    if options.split_column:
        raise PlanError("split", options.split, "needs a table with this column; use ordered or none")
    validation, test = (count and max(count, window + 1) for count in split_counts(tokens, options))
    train = tokens - validation - test
    if train <= window:
        parts = 1 + bool(validation) + bool(test)
        reason = f"an example needs {window + 1} tokens, in each of {parts} parts, but the text has {tokens:,}"
        raise PlanError("window", window, f"{reason}; use a smaller one, or ", FieldValue("split", "none"))
    return train, validation, test


def _validation_path(options: DataOptions) -> Path | None:
    """The text file with the validation examples, if the plan has one.

    Raises:
        PlanError: There is no such file.
    """
    if not options.validation_data:
        return None
    path = user_path(options.validation_data)
    if not is_file(path):
        raise PlanError("validation_data", options.validation_data, "no such text file")
    return path


def _check_validation(tokens: int, options: DataOptions) -> None:
    """Check that the text file with the validation examples has enough tokens for an example.

    Raises:
        PlanError: The file has too few tokens.
    """
    if tokens <= _tokens_per_example(options):
        reason = f"an example needs {_tokens_per_example(options) + 1} tokens, but the file has {tokens:,}"
        raise PlanError("validation_data", options.validation_data, reason)
