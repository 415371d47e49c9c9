"""Reads a text file for language models: tokens, and the same tokens one later."""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.dataset import Dataset, materialise
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.texts.characters import CharacterEncoder
from accel_engine.data.texts.token_blocks import (
    block_split,
    check_validation,
    divide_tokens,
    tokens_per_example,
    validation_path,
)
from accel_engine.data.texts.vocabulary import BYTES, UNKNOWN
from accel_engine.errors import DataError

_LISTED = 8
"""Maximum number of unknown characters that a note lists."""

Tokens: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a text file.

    Args:
        entry: Has the file's path.
        options: The plan's tokenizer, window and split.
        progress: Reports the number of tokens.

    Raises:
        DataError: A file cannot be read.
        PlanError: An option does not fit the text.
    """
    assert entry.path is not None  # noqa: S101 (an entry of a text file has a path)
    encode = _encode_bytes if options.tokenizer == "bytes" else _encode_characters
    parts, vocabulary, notes = encode(entry.path, validation_path(options), options, progress)
    if options.validation_data:
        check_validation(len(parts[1]), options)
    names = ("training", "validation", "test")
    counts = ", ".join(f"{len(part):,} {name}" for part, name in zip(parts, names, strict=True) if len(part))
    train, validation, test = materialise([block_split(part, options) for part in parts])
    return Dataset(
        entry.name,
        train,
        validation if len(validation) else None,
        test if len(test) else None,
        task="sequence",
        kind="tokens",
        vocabulary=vocabulary,
        value_range=ValueRange("int32"),
        notes=(
            f"{counts} {options.tokenizer}, a vocabulary of {len(vocabulary):,}",
            f"blocks of {tokens_per_example(options)} {options.tokenizer} do not overlap: an epoch predicts each once",
            *notes,
        ),
    )


_Encoded: TypeAlias = tuple[list[Tokens], tuple[str, ...], tuple[str, ...]]
"""The tokens of each split, the vocabulary, and notes."""


def _encode_bytes(path: Path, validation: Path | None, options: DataOptions, progress: Progress) -> _Encoded:
    del progress
    try:
        tokens = np.fromfile(path, np.uint8)
        other = np.fromfile(validation, np.uint8) if validation else None
    except OSError as error:
        raise DataError(f"{error.filename or path}: {error.strerror}") from error
    return _parts(tokens, other, options), BYTES, ()


def _encode_characters(path: Path, validation: Path | None, options: DataOptions, progress: Progress) -> _Encoded:
    encoder = CharacterEncoder(replace=options.invalid_examples == "skip")
    length = encoder.count(path)
    learned = divide_tokens(length, options)[0]
    tokens = encoder.encode(path, length, learned, progress)
    other = encoder.encode(validation, encoder.count(validation), 0, no_progress) if validation else None
    notes = []
    if encoder.unknown:
        shown = ", ".join(repr(character) for character, _ in encoder.unknown.most_common(_LISTED))
        more = ", ..." if len(encoder.unknown) > _LISTED else ""
        count = f"{encoder.unknown.total():,} characters after the training part"
        notes.append(f"{count} are not in its vocabulary, and share the token {UNKNOWN}: {shown}{more}")
    if encoder.replaced:
        notes.append(f"bytes that are not UTF-8 were replaced by {UNKNOWN}: {encoder.replaced:,} in all")
    return _parts(tokens, other, options), encoder.vocabulary, tuple(notes)


def _parts(tokens: Tokens, validation: Tokens | None, options: DataOptions) -> list[Tokens]:
    """The tokens of each split."""
    parts = np.split(tokens, np.cumsum(divide_tokens(len(tokens), options))[:2])
    return parts if validation is None else [parts[0], validation, parts[2]]
