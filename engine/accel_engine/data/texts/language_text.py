"""Describes and reads a text file for language models: tokens, and the same tokens one later."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.dataset import Dataset, make_if_small
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.source import Source
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.data.texts.characters import BYTES, UNKNOWN, CharacterEncoder, read_texts
from accel_engine.data.texts.token_blocks import (
    block_count,
    block_split,
    check_validation,
    divide_tokens,
    tokens_per_example,
    validation_path,
)
from accel_engine.errors import DataError

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
    def _path(self) -> Path:
        assert self.entry.path is not None  # noqa: S101 (an entry of a text file has a path)
        return self.entry.path

    @cached_property
    def _replaces(self) -> bool:
        return self.options.invalid_examples == "skip"

    def describe(self) -> DatasetEntry:
        """Complete the entry with the number of tokens and of examples, and the characters at the start of the file."""
        window = tokens_per_example(self.options)
        is_of_characters = self.options.tokenizer == "characters"
        start = next(read_texts(self._path, replace=self._replaces or not is_of_characters, chunk=_START))
        tokens = self._count(self._path)
        counts: list[int | None] = [None, None, None]
        if tokens is not None:
            counts = [block_count(part, window) for part in divide_tokens(tokens, self.options)]
        if other := validation_path(self.options):
            other_tokens = self._count(other)
            if other_tokens is not None:
                check_validation(other_tokens, self.options)
            counts[1] = other_tokens and block_count(other_tokens, window)
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
        tokens, other, vocabulary, changes = read(validation_path(options), progress)
        parts = np.split(tokens, np.cumsum(divide_tokens(len(tokens), options))[:2])
        if other is not None:
            check_validation(len(other), options)
            parts[1] = other
        names = ("training", "validation", "test")
        counts = ", ".join(f"{len(part):,} {name}" for part, name in zip(parts, names, strict=True) if len(part))
        blocks = f"blocks of {tokens_per_example(options)} {options.tokenizer}"
        train, validation, test = make_if_small([block_split(part, options) for part in parts])
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
        try:
            size = path.stat().st_size
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        if self.options.tokenizer == "bytes":
            return size
        return None if size > _COUNTED else sum(map(len, read_texts(path, replace=self._replaces)))

    def _read_bytes(self, validation: Path | None, progress: Progress) -> "_Read":
        del progress
        try:
            tokens = np.fromfile(self._path, np.uint8)
            return tokens, np.fromfile(validation, np.uint8) if validation else None, BYTES, ()
        except OSError as error:
            raise DataError(f"{error.filename or self._path}: {error.strerror}") from error

    def _read_characters(self, validation: Path | None, progress: Progress) -> "_Read":
        encoder = CharacterEncoder(replace=self._replaces)
        length = encoder.count(self._path)
        tokens = encoder.encode(self._path, length, divide_tokens(length, self.options)[0], progress)
        other = encoder.encode(validation, encoder.count(validation), 0, no_progress) if validation else None
        return tokens, other, encoder.vocabulary, tuple(_changes(encoder))


_Read: TypeAlias = tuple[_Tokens, _Tokens | None, tuple[str, ...], tuple[Change, ...]]
"""The tokens of the text, and of the one for validation, the vocabulary, and what was changed."""


def _changes(encoder: CharacterEncoder) -> list[Change]:
    changes = []
    if encoder.unknown:
        shown = ", ".join(repr(character) for character, _ in encoder.unknown.most_common(_LISTED))
        more = ", ..." if len(encoder.unknown) > _LISTED else ""
        detail = f"to the token {UNKNOWN}, as the training part has none of them: {shown}{more}"
        changes.append(Change("converted", "characters", encoder.unknown.total(), detail=detail))
    if encoder.replaced:
        changes.append(Change("converted", "bytes outside UTF-8", encoder.replaced, detail=f"to {UNKNOWN}"))
    return changes
