"""The user's own arrays in an ``.npz`` file, in the form in which Keras keeps its datasets."""

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
"""The names of arrays that make a dataset, fullest first."""

_MOST_NAMED = 8
"""Arrays that a note names."""

_IN_KERAS_FORM = {"x": "x_train", "y": "y_train"}


def read(entry: DatasetEntry, *, image_size: str | None, seed: int) -> Dataset:
    """Read the arrays.

    Args:
        entry: Has the file's path.
        image_size: Not used; arrays are taken as they are.
        seed: Decides what is split off for validation where there is no ``x_test``.

    Raises:
        DataError: The file or what is in it cannot be used.
    """
    del image_size
    path = _path(entry)
    with _opened(path) as file:
        names = _names(set(file.files))
        dataset = from_arrays(entry.name, {_IN_KERAS_FORM.get(name, name): file[name] for name in names}, seed)
        return replace(dataset, notes=(*dataset.notes, *_unused(file.files, names)))


def survey(entry: DatasetEntry) -> DatasetEntry:
    """Find shape and counts from the file's headers and its labels, without reading its examples.

    Raises:
        DataError: The file or what was seen of it cannot be used.
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
        numbers=value_range(dtype, shape),
        notes=unused,
    )


def _path(entry: DatasetEntry) -> Path:
    assert entry.path is not None  # noqa: S101 (such an entry has one)
    return entry.path


def _names(there: set[str]) -> tuple[str, ...]:
    for wanted, names in _NAMES.items():
        if wanted <= there:
            return names
    found = f"the file has {', '.join(sorted(there))}" if there else "the file is empty"
    raise DataError(f"there must be x_train and y_train, with x_test and y_test or without, or x and y; {found}")


def _unused(there: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """A note on the arrays of a file that nothing is done with, if there are any."""
    unused = sorted(set(there) - set(names))
    if not unused:
        return ()
    listed = ", ".join(map(repr, unused[:_MOST_NAMED])) + (", …" if len(unused) > _MOST_NAMED else "")
    # repr: the names are the file's, and may hold control characters
    weights = "; every example has the same weight" if any("weight" in name for name in unused) else ""
    return (f"arrays of the file that are not used: {listed}{weights}",)


def _header(path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type of an array, from its header alone."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read_header: Any = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise ValueError(f"{name} has a header of an unknown version {version}")
        shape, _, dtype = read_header(file)
        return shape, dtype


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, and say of every way in which it can be broken that it is, and how."""
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):  # NumPy would take it for a pickle
                raise zipfile.BadZipFile("it is no complete ZIP archive")
        with np.load(path, allow_pickle=False) as file:
            yield file
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path} does not fit in memory") from error
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise DataError(f"{path} holds Python objects, which are not read because they could run code") from error
        raise DataError(f"{path} is broken, or no .npz file: {error}") from error
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is broken, or no .npz file: {error or type(error).__name__}") from error
