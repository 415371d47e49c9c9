"""Finds the records of TFRecord files and reads them by row; without TensorFlow.

A record is its length as 8 bytes, little-endian, a checksum of 4 bytes, its content, and a checksum of 4 bytes
(https://www.tensorflow.org/tutorials/load_data/tfrecord).
"""

import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.errors import DataError
from accel_engine.files import regular
from accel_engine.user_paths import is_directory

File = TypeVar("File")
"""A path, or an address."""

_BEFORE = 12
_AFTER = 4
"""Bytes of a record before and after its content."""


class RecordFiles:
    """The records of some files, one after the other.

    Args:
        paths: The files.
        limit: Maximum number of records that are looked for.

    Raises:
        DataError: A file cannot be read, or is not a TFRecord file.
    """

    def __init__(self, paths: Sequence[Path], limit: int | None = None) -> None:
        self.paths = tuple(paths)
        self.complete = True
        """Whether all records were found, not only those up to the limit."""
        found: list[npt.NDArray[np.int64]] = []
        count = 0
        for number, path in enumerate(paths):
            left = None if limit is None else limit - count
            offsets, complete = _find_records(path, left)
            self.complete = self.complete and complete
            count += len(offsets)
            found.append(np.insert(offsets, 0, number, axis=1))
        table = np.concatenate(found) if found else np.zeros((0, 3), np.int64)
        self.files, self.offsets, self.lengths = table.T
        self._contents: dict[int, npt.NDArray[np.uint8]] = {}

    def __len__(self) -> int:
        return len(self.files)

    def get(self, rows: npt.NDArray[np.integer[Any]]) -> list[bytes]:
        """The contents of the records at ``rows``.

        Raises:
            DataError: A file cannot be read.
        """
        return [self._read(row) for row in rows.tolist()]

    def name(self, row: int) -> str:
        """The file of a record, and its number there from 0."""
        number = int(self.files[row])
        first = int(np.searchsorted(self.files, number))
        return f"record {row - first} of {self.paths[number]}"

    def _read(self, row: int) -> bytes:
        number = int(self.files[row])
        path = self.paths[number]
        try:
            if number not in self._contents:
                self._contents[number] = np.memmap(path, np.uint8, "r")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        first = int(self.offsets[row])
        return self._contents[number][first : first + int(self.lengths[row])].tobytes()


def record_paths(root: Path) -> dict[str, list[Path]]:
    """The TFRecord files of each split, by name: of a file, only itself, for training.

    The files of a folder belong to the split with whose name theirs begin, such as ``train-00000-of-00010.tfrecord``;
    all others are for training.

    Raises:
        DataError: The folder cannot be read.
    """
    if not is_directory(root):
        return {"train": [root]}
    try:
        files = sorted(path for path in root.iterdir() if ".tfrecord" in path.name and not path.name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot read the folder {root}: {error.strerror or error}") from error
    return by_split({path.name: path for path in files}, root)


def by_split(files: Mapping[str, File], root: object) -> dict[str, list[File]]:
    """The files of each split.

    Args:
        files: They by name.
        root: Their folder, for messages.

    Raises:
        DataError: None is for training.
    """
    splits: dict[str, list[File]] = {"train": []}
    for name, file in files.items():
        split = next((split for start, split in _BEGINNINGS.items() if name.lower().startswith(start)), "train")
        splits.setdefault(split, []).append(file)
    if not splits["train"]:
        raise DataError(f"{root} has no training records; names of files with these begin with train")
    return splits


_BEGINNINGS = {"val": "validation", "test": "test"}


def _find_records(path: Path, limit: int | None) -> tuple[npt.NDArray[np.int64], bool]:
    """Offset and length of each record, ``[records, 2]``, and whether these are all."""
    found: list[tuple[int, int]] = []
    try:
        with regular(path).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise DataError(f"{path} is empty")
            if file.read(2) == b"\x1f\x8b":
                raise DataError(f'{path} is compressed: add "compression": "GZIP" to its description')
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                end, at = len(content), 0
                while at < end and (limit is None or len(found) < limit):
                    length = struct.unpack_from("<Q", content, at)[0] if at + _BEFORE <= end else end
                    if at + _BEFORE + length + _AFTER > end:
                        raise DataError(
                            f"{path} ends within record {len(found)}: the file is not complete"
                            if found
                            else f"{path} is not a TFRecord file"
                        )
                    found.append((at + _BEFORE, length))
                    at += _BEFORE + length + _AFTER
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return np.array(found, np.int64).reshape(-1, 2), at >= end
