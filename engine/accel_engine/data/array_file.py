"""Opens ``.npz`` and ``.npy`` files, and reads headers and first rows without the rest."""

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_engine.errors import MAX_REASON_LENGTH, DataError, format_error
from accel_engine.files import regular
from accel_engine.memory import check_fits_memory

MAX_ARRAYS = 10_000
"""Maximum number of arrays of a file."""

_HEAD = 1 << 16
"""Bytes that a header may have: NumPy reads up to 10,000."""


class Header(NamedTuple):
    """The shape and type of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def rows(self) -> npt.NDArray[Any]:
        """An array of this shape and type that takes no memory; its values mean nothing."""
        return np.broadcast_to(np.empty((), self.dtype), self.shape)


class _Place(NamedTuple):
    """Where an array is: its name, the member of the file, the field of its records if it has these, and its header."""

    name: str
    member: str
    field: str | None
    header: Header


class ArrayFile:
    """Arrays in a file. Those of fields of records are arrays, too: ``a`` of an ``.npy`` file, ``x.a`` otherwise.

    Args:
        path: An ``.npz`` file, or an ``.npy`` file, whose array is called ``x``.
    """

    def __init__(self, path: Path) -> None:
        self._path = regular(path)
        self._archive = None if path.suffix.lower() == ".npy" else zipfile.ZipFile(path)
        members = ["x.npy"] if self._archive is None else self._archive.namelist()
        if len(members) > MAX_ARRAYS:
            raise DataError(f"it has {len(members):,} arrays; at most {MAX_ARRAYS:,} are read")
        self.other_files = tuple(member for member in members if not member.endswith(".npy"))
        """Names of files in it that are not arrays."""
        names = [member.removesuffix(".npy") for member in members if member.endswith(".npy")]
        if {"format", "shape", "data"} <= set(names):
            raise DataError(
                "it is a sparse matrix of SciPy: save it as an array, with np.savez(..., x=matrix.toarray())"
            )
        self._stored = {name: self._header(name) for name in names}
        self._places = {
            place.name: place for name, header in self._stored.items() for place in self._find_arrays(name, header)
        }
        self._records: dict[str, npt.NDArray[Any]] = {}
        self.headers: Mapping[str, Header] = {name: place.header for name, place in self._places.items()}

    def _find_arrays(self, member: str, stored: Header) -> "Iterator[_Place]":
        """The arrays of a member: one, or one for each field of records."""
        shape, dtype = stored
        if not dtype.names:
            yield _Place(member, member, None, Header(shape, dtype.newbyteorder("=")))
        for field in dtype.names or ():
            own = dtype[field]
            header = Header((*shape, *own.shape), own.base.newbyteorder("="))
            yield _Place(field if self._archive is None else f"{member}.{field}", member, field, header)

    def read(self, name: str) -> npt.NDArray[Any]:
        """Read an array, in this machine's byte order.

        Raises:
            DataError: The array does not fit in memory, or has Python objects.
        """
        _, member, field, _ = self._places[name]
        array = self._records.get(member)
        if array is None:
            self.check(name)
            with self._open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
        if field is not None:
            self._records[member] = array
            array = array[field]
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def check(self, name: str) -> None:
        """Check that an array can be read, by its header: a small file may hold a huge array.

        Raises:
            DataError: The array does not fit in memory, or has Python objects.
        """
        member = self._places[name].member
        shape, dtype = self._stored[member]
        if dtype.hasobject:
            remedy = "save it as numbers or text, e.g. with array.astype(str)"
            raise DataError(
                f"the array {member} has Python objects, which are not loaded as they could run code: {remedy}"
            )
        check_fits_memory(f"the array {member}, {dtype} {list(shape)},", math.prod(shape) * dtype.itemsize)

    def first_rows(self, name: str, count: int) -> npt.NDArray[Any]:
        """Read the first rows of an array, without the others where its layout allows that."""
        _, member, field, _ = self._places[name]
        with self._open(member) as file:
            start = BytesIO(file.read(_HEAD))
            shape, fortran, dtype = _read_header(start, member)
            if dtype.hasobject or not shape or fortran:
                array = self.read(name)
                return array[:count] if shape else array
            rows = (min(count, shape[0]), *shape[1:])
            size = math.prod(rows) * dtype.itemsize
            check_fits_memory(f"the first rows of the array {name}, {dtype} {list(shape)},", size)
            content = start.read(size)
            array = np.frombuffer(content + file.read(size - len(content)), dtype).reshape(rows)
            array = array if field is None else array[field]
            return array.astype(array.dtype.newbyteorder("="), copy=False)

    def close(self) -> None:
        """Close the file."""
        if self._archive is not None:
            self._archive.close()

    def _header(self, name: str) -> Header:
        with self._open(name) as file:
            start = BytesIO(file.read(_HEAD))
            shape, _, dtype = _read_header(start, name)
            needed, stored = start.tell() + math.prod(shape) * dtype.itemsize, self._size(name)
            if not dtype.hasobject and stored < needed:
                raise ValueError(f"the array {name} has {stored:,} of {needed:,} bytes")
            return Header(shape, dtype)

    def _size(self, name: str) -> int:
        """Bytes of an array with its header, uncompressed."""
        return self._path.stat().st_size if self._archive is None else self._archive.getinfo(f"{name}.npy").file_size

    def _open(self, name: str) -> IO[bytes]:
        return self._path.open("rb") if self._archive is None else self._archive.open(f"{name}.npy")


def _read_header(start: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type, from the beginning of an array's file."""
    try:
        version = np.lib.format.read_magic(start)
        read: Any = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"{name} has a header of unknown version {version}")
        shape, fortran, dtype = read(start)
    except Exception as error:  # NumPy evaluates the header as Python's parser does, which raises errors of any type
        is_cut = isinstance(error, ValueError) and str(error).startswith("EOF: ")
        raise ValueError(f"the header of {name}{' is cut short' if is_cut else f': {format_error(error)}'}") from error
    if (
        min(shape, default=0) < 0
        or math.prod(max(side, 1) for side in (*shape, dtype.itemsize)) > np.iinfo(np.intp).max
    ):
        raise ValueError(f"the header of {name} has the shape {shape}")
    return shape, fortran, dtype


@contextmanager
def opened(path: Path) -> Iterator[ArrayFile]:
    """Open a file; every error is raised as a :class:`DataError` that begins with the path."""
    try:
        file = ArrayFile(path)
        try:
            yield file
        finally:
            file.close()
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path} does not fit in memory") from error
    except (*_DAMAGES, ValueError) as error:
        reason = str(error)[:MAX_REASON_LENGTH] or type(error).__name__
        raise DataError(f"{path} is damaged or not an {path.suffix} file: {reason}") from error


_DAMAGES = (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)
"""What the readers of archives raise besides a ``ValueError``; a ``RuntimeError`` for an encrypted one."""
