"""Reads the user's arrays from an ``.npz`` file, named as in ``keras.datasets``."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.data.arrays import (
    check_classes,
    check_lengths,
    example_shape,
    from_arrays,
    sparse_labels,
    value_range,
)
from accel_engine.data.dataset import Dataset, validation_count
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.errors import DataError

_NAMES = {
    frozenset({"x_train", "y_train", "x_test", "y_test"}): ("x_train", "y_train", "x_test", "y_test"),
    frozenset({"x_train", "y_train"}): ("x_train", "y_train"),
    frozenset({"x", "y"}): ("x", "y"),
}
"""Accepted sets of array names, the largest first."""

_MAX_LISTED = 8
"""Maximum number of arrays listed in a note."""

_KERAS_NAMES = {"x": "x_train", "y": "y_train"}


def read(entry: DatasetEntry, *, image_size: str | None, seed: int) -> Dataset:
    """Read the arrays.

    Args:
        entry: Has the file's path.
        image_size: Not used.
        seed: Seed of the validation split, if there is no ``x_test``.

    Raises:
        DataError: The file or its arrays cannot be used.
    """
    del image_size
    path = _path(entry)
    with _opened(path) as file:
        names = _names(set(file.files))
        dataset = from_arrays(entry.name, {_KERAS_NAMES.get(name, name): file[name] for name in names}, seed)
        return replace(dataset, notes=(*dataset.notes, *_unused(file.files, names)))


def survey(entry: DatasetEntry) -> DatasetEntry:
    """Find shape and counts from the file's headers and its labels, without reading its examples.

    Raises:
        DataError: The file, its headers or its labels cannot be used.
    """
    path = _path(entry)
    with _opened(path) as file:
        names = _names(set(file.files))
        shape, dtype = _header(path, names[0])
        labels = file[names[1]]
        check_lengths(shape, labels.shape, *names[:2])
        _, classes = sparse_labels(labels, names[1])
        check_classes(classes, names[1])
        if len(names) == 4:
            train, validation = shape[0], _header(path, names[2])[0][0]
        else:
            validation = validation_count(shape[0])
            train = shape[0] - validation
        unused = _unused(file.files, names)
    return replace(
        entry,
        shape=example_shape(shape),
        classes=classes,
        examples=train,
        validation_examples=validation,
        value_range=value_range(dtype, shape),
        notes=unused,
    )


def _path(entry: DatasetEntry) -> Path:
    assert entry.path is not None  # noqa: S101 (an entry of an .npz file has a path)
    return entry.path


def _names(available: set[str]) -> tuple[str, ...]:
    for required, names in _NAMES.items():
        if required <= available:
            return names
    found = f"the file has {', '.join(sorted(available))}" if available else "the file is empty"
    raise DataError(f"expected x_train and y_train, optionally with x_test and y_test, or x and y; {found}")


def _unused(available: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """A note on the unused arrays of a file, if there are any."""
    unused = sorted(set(available) - set(names))
    if not unused:
        return ()
    listed = ", ".join(map(repr, unused[:_MAX_LISTED])) + (", …" if len(unused) > _MAX_LISTED else "")
    # repr: the file's names may contain control characters
    weights = "; all examples have the same weight" if any("weight" in name for name in unused) else ""
    return (f"unused arrays in the file: {listed}{weights}",)


def _header(path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the shape and dtype of an array from its header."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read_header: Any = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise ValueError(f"{name} has a header of unknown version {version}")
        shape, _, dtype = read_header(file)
        return shape, dtype


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file; every error is raised as a :class:`DataError`."""
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):  # NumPy would try to unpickle it
                raise zipfile.BadZipFile("not a complete ZIP archive")
        with np.load(path, allow_pickle=False) as file:
            yield file
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path} does not fit in memory") from error
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise DataError(f"{path} has Python objects, which are not loaded as they could run code") from error
        raise DataError(f"{path} is damaged or not an .npz file: {error}") from error
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or not an .npz file: {error or type(error).__name__}") from error
