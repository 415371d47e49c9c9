"""Opens ``.npz`` and ``.npy`` files, and reads headers and first rows without the rest."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_engine.errors import DataError


class Header(NamedTuple):
    """The shape and type of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def rows(self) -> npt.NDArray[Any]:
        """An array of this shape and type that takes no memory; its values mean nothing."""
        return np.broadcast_to(np.empty((), self.dtype), self.shape)


class ArrayFile:
    """Arrays in a file.

    Args:
        path: An ``.npz`` file, or an ``.npy`` file, whose array is called ``x``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive = None if path.suffix.lower() == ".npy" else zipfile.ZipFile(path)
        members = ["x"] if self._archive is None else self._archive.namelist()
        names = [member.removesuffix(".npy") for member in members]
        self.headers: Mapping[str, Header] = {name: self._header(name) for name in names}

    def read(self, name: str) -> npt.NDArray[Any]:
        """Read an array."""
        with self._open(name) as file:
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array

    def first_rows(self, name: str, count: int) -> npt.NDArray[Any]:
        """Read the first rows of an array, without the others where its layout allows that."""
        with self._open(name) as file:
            shape, fortran, dtype = _read_header(file, name)
            if dtype.hasobject or not shape or fortran:
                return self.read(name)[:count]
            rows = (min(count, shape[0]), *shape[1:])
            size = int(np.prod(rows)) * dtype.itemsize
            return np.frombuffer(file.read(size), dtype).reshape(rows)

    def close(self) -> None:
        """Close the file."""
        if self._archive is not None:
            self._archive.close()

    def _header(self, name: str) -> Header:
        with self._open(name) as file:
            shape, _, dtype = _read_header(file, name)
            return Header(shape, dtype)

    def _open(self, name: str) -> IO[bytes]:
        return self._path.open("rb") if self._archive is None else self._archive.open(f"{name}.npy")


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type."""
    version = np.lib.format.read_magic(file)
    read: Any = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"{name} has a header of unknown version {version}")
    shape, fortran, dtype = read(file)
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
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise DataError(f"{path} has Python objects, which are not loaded as they could run code") from error
        raise DataError(f"{path} is damaged or not an {path.suffix} file: {error}") from error
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or not an {path.suffix} file: {error or type(error).__name__}") from error
