"""Arrays of decoded files: one row per file, read when it is needed or all at once."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.folders.file_check import Check, FileChecker
from accel_engine.data.parallel_decoder import ParallelDecoder
from accel_engine.errors import DataError
from accel_engine.files import regular

_CHUNK_BYTES = 8 << 20
"""Decoded bytes of the files that are decoded at a time."""

_CHUNK_FILES = 1024
"""Maximum number of files decoded at a time."""


class FileArray:
    """A lazy array with a row for each file.

    Args:
        files: Paths.
        decoder: Decodes a path to an array.
        shape: Shape of a row.
        dtype: Type of the rows; ``object`` for text.
        explain: Raises a ``DataError`` with the reason why a file cannot be decoded.
        convert: Converts decoded files, ``[files, ...]``, to rows.
        check: Checks a file before it is first decoded: its header may claim any size.
    """

    def __init__(
        self,
        files: Sequence[str],
        decoder: ParallelDecoder,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        explain: Callable[[str], object],
        convert: Callable[[npt.NDArray[Any]], Any] = lambda decoded: decoded,
        check: Check = regular,
    ) -> None:
        self.files = files
        self.shape = (len(files), *shape)
        self.dtype = np.dtype(dtype)
        self._decoder = decoder
        self._explain = explain
        self._convert = convert
        self._check = check

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all rows in memory; of text, the bytes of the files."""
        if self.dtype.hasobject:
            return sum(map(_size, self.files))
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Decode the files at ``rows``.

        Raises:
            DataError: A file cannot be decoded.
        """
        values = np.empty((len(rows), *self.shape[1:]), self.dtype)
        valid = self._decode([self.files[row] for row in rows], values, np.ones(len(rows), np.bool_))
        if not valid.all():
            raise self.problem(int(rows[np.argmin(valid)]))
        return values

    def read_all(
        self, progress: Progress = no_progress, *, skip: bool = False
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Decode all files.

        Args:
            progress: Reports the number of files decoded.
            skip: Whether to go on after a file that cannot be decoded.

        Returns:
            All rows, and which of them could be decoded.

        Raises:
            DataError: A file cannot be decoded, unless they are skipped.
        """
        values = np.empty(self.shape, self.dtype)
        valid = np.empty(len(self), np.bool_)
        checked = FileChecker(self._check)
        for chunk in self._chunks():
            opens, _ = checked(self.files[chunk])
            valid[chunk] = self._decode(self.files[chunk], values[chunk], opens)
            if not skip and not valid[chunk].all():
                raise self.problem(chunk.start + int(np.argmin(valid[chunk])))
            progress(min(chunk.stop, len(self)), len(self))
        return values, valid

    def find_valid(self, progress: Progress = no_progress, *, decode_all: bool = True) -> npt.NDArray[np.bool_]:
        """Find out which files can be decoded.

        Args:
            progress: Reports the number of files checked.
            decode_all: Whether all are decoded; otherwise those that do not seem whole.
        """
        valid = np.empty(len(self), np.bool_)
        checked = FileChecker(self._check)
        for chunk in self._chunks():
            files = self.files[chunk]
            opens, whole = checked(files)
            decoded = opens if decode_all else opens & ~whole
            values = np.empty((len(files), *self.shape[1:]), self.dtype)
            valid[chunk] = (opens & ~decoded) | self._decode(files, values, decoded)
            progress(min(chunk.stop, len(self)), len(self))
        return valid

    def select(self, rows: npt.NDArray[Any]) -> "FileArray":
        """The array of the files at ``rows``, or of those that a mask selects."""
        files = np.array(self.files, object)[rows].tolist()
        return FileArray(files, self._decoder, self.shape[1:], self.dtype, self._explain, self._convert, self._check)

    def problem(self, row: int) -> DataError:
        """The reason why a file cannot be decoded."""
        try:
            self._explain(self.files[row])
        except DataError as error:
            return error
        return DataError(f"cannot read {self.files[row]}")

    def _chunks(self) -> Iterator[slice]:
        row_bytes = max(1, self.nbytes // max(1, len(self)))
        size = max(1, min(_CHUNK_FILES, _CHUNK_BYTES // row_bytes))
        return (slice(first, first + size) for first in range(0, len(self), size))

    def _decode(
        self, files: Sequence[str], values: npt.NDArray[Any], chosen: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Decode the chosen files into ``values``, ``[files, ...]``, and tell which could be decoded."""
        valid = np.zeros(len(files), np.bool_)
        found = np.flatnonzero(chosen)
        rows, decoded = self._decoder([files[row] for row in found.tolist()])
        rows = found[rows]
        valid[rows] = True
        for array in decoded:
            values[rows] = self._convert(array)
        return valid


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:  # reading it tells why
        return 0
