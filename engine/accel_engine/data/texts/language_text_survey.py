"""Looks at a text file for language models without reading all of it; without TensorFlow."""

from dataclasses import replace
from pathlib import Path

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.data.texts.characters import read_texts
from accel_engine.data.texts.token_blocks import (
    block_count,
    check_validation,
    divide_tokens,
    tokens_per_example,
    validation_path,
)
from accel_engine.errors import DataError

_COUNTED = 1 << 26
"""Bytes of the largest file whose characters are counted, which takes some tenths of a second."""

_START = 1 << 20
"""Bytes at the start of the file whose characters are looked at."""

_SAMPLE = 240
"""Characters of the sample."""


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find the number of tokens and of examples, and the different characters at the start of the file.

    Raises:
        DataError: The file cannot be read, or its start is not UTF-8.
        PlanError: An option does not fit the text.
    """
    assert entry.path is not None  # noqa: S101 (an entry of a text file has a path)
    path, window = entry.path, tokens_per_example(options)
    characters = options.tokenizer == "characters"
    lenient = not characters or options.invalid_examples == "skip"
    start = next(read_texts(path, replace=lenient, chunk=_START))
    tokens = _count_tokens(path, options)
    counts: list[int | None] = [None, None, None]
    if tokens is not None:
        counts = [block_count(part, window) for part in divide_tokens(tokens, options)]
    if other := validation_path(options):
        other_tokens = _count_tokens(other, options)
        if other_tokens is not None:
            check_validation(other_tokens, options)
        counts[1] = other_tokens and block_count(other_tokens, window)
    noun = "characters" if characters else "bytes"
    number = "many" if tokens is None else f"{tokens:,}"
    different = f", {len(set(start)):,} different ones at the start" if characters else ""
    spec = ArraySpec((window,), "int32")
    return replace(
        entry,
        kind="tokens",
        task="sequence",
        shape=(window,),
        classes=0,
        spec=Batch(spec, spec),
        value_range=ValueRange("int32"),
        examples=counts[0],
        validation_examples=counts[1],
        test_examples=counts[2],
        columns=(EntryColumn("text", noun, "input", None, f"{number} {noun}{different}"),),
        samples=(("start", start[:_SAMPLE]),),
    )


def _count_tokens(path: Path, options: DataOptions) -> int | None:
    """Number of tokens of a file; ``None`` for characters of a very large one, as all of it would have to be read."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    if options.tokenizer == "bytes":
        return size
    return None if size > _COUNTED else sum(map(len, read_texts(path, replace=options.invalid_examples == "skip")))
