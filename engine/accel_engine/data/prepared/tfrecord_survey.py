"""Finds the features and the number of records of TFRecord files; without TensorFlow."""

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.data.prepared.example_features import parse_example
from accel_engine.data.prepared.feature_description import (
    NAME,
    FeatureDescription,
    description_path,
    parse_description,
    suggest_description,
)
from accel_engine.data.prepared.record_layout import RecordLayout, survey_of_records
from accel_engine.data.prepared.records import RecordFiles, record_paths
from accel_engine.data.prepared.roles import choose_roles
from accel_engine.data.prepared.split_names import choose_splits
from accel_engine.errors import DataError
from accel_engine.files import regular
from accel_engine.user_paths import user_path

_FIRST = 1 << 24
"""Bytes in which the first record of a compressed file must end, packed and unpacked."""


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Count the records, and compare the first one with the description.

    Raises:
        DataError: The description is missing, or does not fit; or a file is damaged.
        PlanError: An option does not fit.
    """
    return survey_of_records(entry, read_layout(entry, options), options)


def read_layout(entry: DatasetEntry, options: DataOptions) -> RecordLayout:
    """Find the files of a path and the description beside them.

    Raises:
        DataError: The description is missing, or does not fit the first record.
        PlanError: An option does not fit.
    """
    root = Path(entry.path or ".")
    found = record_paths(root)
    splits = choose_splits(found, options)
    paths = {use: found[name] for use, name in splits.by_use.items()}
    if options.validation_data:
        paths["validation"] = record_paths(user_path(options.validation_data))["train"]
    path = description_path(root)
    if path is None:
        place = root / NAME if root.is_dir() else root.with_name(NAME)
        raise DataError(how_to_describe(root, place, _first_record(paths["train"][0], "")))
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    description = parse_description(text, path)
    check_description(description, _first_record(paths["train"][0], description.compression), paths["train"][0], path)
    return lay_out(description, options, paths, splits.notes)


def lay_out(
    description: FeatureDescription,
    options: DataOptions,
    paths: dict[str, list[Path]] | None = None,
    notes: tuple[str, ...] = (),
) -> RecordLayout:
    """Apply a plan's options to a description.

    Raises:
        PlanError: An option does not fit.
    """
    if options.image_size is not None:
        size = parse_size(options.image_size)
        description = replace(
            description,
            features={
                name: replace(each, shape=(*size, *each.shape[2:])) if each.encoding == "image" else each
                for name, each in description.features.items()
            },
        )
    roles = choose_roles(tuple(description.features), options, description.target, description.weight)
    padded = [f"{name} to {list(each.shape)}" for name, each in description.features.items() if each.pad is not None]
    if padded:
        notes += (f"lists of other lengths are filled up or cut: {', '.join(padded)}",)
    return RecordLayout(paths or {}, description, roles, notes)


def check_description(description: FeatureDescription, record: bytes, file: object, path: object) -> None:
    """Check that a record has the features that its description names."""
    found = parse_example(record)
    if found is None:
        raise DataError(f"the first record of {file} is not a tf.train.Example")
    for name, feature in description.features.items():
        stored = "string" if feature.encoding or feature.dtype == "string" else _stored_type(feature.dtype)
        if name not in found:
            raise DataError(f"{path} describes {name}, but the first record of {file} has {', '.join(found)}")
        dtype, values = found[name]
        if dtype != stored and values:
            raise DataError(f"{path} describes {name} as {feature.dtype}, but {file} has {dtype} values")
        length = int(np.prod(feature.shape, dtype=np.int64))
        if not feature.encoding and feature.pad is None and len(values) != length:
            raise DataError(
                f"{path} gives {name} the shape {list(feature.shape)}, {length} values, but the first record of {file} "
                f'has {len(values)}; for lists of several lengths add "pad": 0'
            )


def _stored_type(dtype: str) -> str:
    return "float32" if dtype.startswith("float") else "int64"


def how_to_describe(root: object, place: object, record: bytes) -> str:
    """The message that there is no description, with one of the first record.

    Args:
        root: The file or folder of records.
        place: Where its description belongs.
        record: The first record.
    """
    message = f"there is no description of the features of {root}: write {place}"
    suggestion = suggest_description(record)
    if suggestion is None:
        return f"{message}; its first record is not a tf.train.Example"
    return f"{message}, such as this one for its first record:\n{suggestion}"


def _first_record(path: Path, compression: str) -> bytes:
    if not compression:
        return RecordFiles([path], 1).get(np.zeros(1, np.int64))[0]
    try:
        with regular(path).open("rb") as file:
            # A stream of 15 or 31 window bits is one of zlib or gzip.
            unpacker = zlib.decompressobj(15 if compression == "ZLIB" else 31)
            start = unpacker.decompress(file.read(_FIRST), _FIRST)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path} as {compression}: {error}") from error
    length = int.from_bytes(start[:8], "little")
    return start[12 : 12 + length]
