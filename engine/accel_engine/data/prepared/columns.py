"""Examples with named columns that are decoded when they are needed, and arrays of these."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import Progress, or_skip
from accel_engine.data.dataset import LazyRows, nonfinite_rows
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError

Rows = npt.NDArray[np.integer[Any]]

_CHUNK = 1024
"""Rows decoded at a time, at most."""

_CHUNK_BYTES = 32 << 20


class ColumnSource(Protocol):
    """Examples with named columns."""

    @property
    def specs(self) -> dict[str, ArraySpec]:
        """Shape and type of each column that can be used."""

    def __len__(self) -> int: ...

    def decode(self, rows: Rows, names: Sequence[str]) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
        """Decode some columns of some rows.

        Returns:
            The columns, ``[len(rows), ...]``, and which rows could be decoded; the others hold anything.
        """

    def problem(self, row: int) -> DataError:
        """The reason why a row cannot be decoded."""


class SourceColumns:
    """Lazy arrays of columns of a source; columns of the same rows are decoded together.

    Args:
        source: The examples.
        names: The columns.
        rows: Rows of the source that the arrays have.
    """

    def __init__(self, source: ColumnSource, names: Sequence[str], rows: Rows) -> None:
        self._source = source
        self._names = names
        self._rows = rows
        self._last: tuple[bytes, dict[str, npt.NDArray[Any]]] = (b"", {})

    def array(self, name: str) -> "SourceColumn":
        """The lazy array of a column."""
        return SourceColumn(self, name, self._source.specs[name], np.arange(len(self._rows)))

    def take(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Decode all columns of some rows.

        Raises:
            DataError: A row cannot be decoded.
        """
        key = rows.tobytes()
        last, values = self._last
        if last == key and values:
            return values
        own = self._rows[rows]
        values, valid = self._source.decode(own, self._names)
        if not valid.all():
            raise self._source.problem(int(own[np.argmin(valid)]))
        self._last = key, values
        return values


class SourceColumn(LazyRows):
    """A lazy array of one column.

    Args:
        columns: All columns.
        name: Its name.
        spec: Its shape and type.
        rows: The rows of the columns that it has.
    """

    def __init__(self, columns: SourceColumns, name: str, spec: ArraySpec, rows: Rows) -> None:
        self.shape = (len(rows), *fixed(spec))
        self.dtype = numpy_type(spec)
        self._columns, self._name, self._spec, self._rows = columns, name, spec, rows

    def take(self, rows: Rows) -> npt.NDArray[Any]:
        """Decode some rows.

        Raises:
            DataError: A row cannot be decoded.
        """
        return self._columns.take(self._rows[rows])[self._name]

    def select(self, rows: Rows) -> "SourceColumn":
        """A lazy array of some rows."""
        return SourceColumn(self._columns, self._name, self._spec, self._rows[rows])


def decode_columns(
    source: ColumnSource, names: Sequence[str], progress: Progress, *, skip: bool, store: bool = True
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """Decode columns of all rows.

    Args:
        source: The examples.
        names: The columns.
        progress: Reports the number of rows decoded.
        skip: Whether to go on after a row that cannot be decoded.
        store: Whether to return the columns, instead of only finding the rows that can be decoded.

    Returns:
        The columns, and which rows could be decoded.

    Raises:
        DataError: A row cannot be decoded, unless they are skipped.
    """
    specs = {name: source.specs[name] for name in names}
    stored = {name: np.empty((len(source), *fixed(spec)), numpy_type(spec)) for name, spec in specs.items() if store}
    valid = np.ones(len(source), np.bool_)
    for chunk in _chunks(len(source), row_bytes(specs.values())):
        rows = np.arange(chunk.start, min(chunk.stop, len(source)))
        values, valid[chunk] = source.decode(rows, names)
        if not skip and not valid[chunk].all():
            raise or_skip(source.problem(chunk.start + int(np.argmin(valid[chunk]))))
        for name, array in stored.items():
            array[chunk] = values[name]
        progress(len(rows) + chunk.start, len(source))
    return stored, valid


def not_finite(values: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.bool_]]:
    """The rows of columns, ``[rows]``, that have numbers which are NaN or infinite, without columns that have none."""
    return {name: rows for name, column in values.items() if (rows := nonfinite_rows(column)).any()}


def row_bytes(specs: Iterable[ArraySpec]) -> int:
    """Bytes of a row in memory."""
    return sum(int(np.prod(fixed(spec), dtype=np.int64)) * numpy_type(spec).itemsize for spec in specs)


def fixed(spec: ArraySpec) -> tuple[int, ...]:
    """The shape of a spec whose sides are all known."""
    return tuple(side or 0 for side in spec.shape)


def numpy_type(spec: ArraySpec) -> np.dtype[Any]:
    """The type of an array; text is an array of objects."""
    return np.dtype(object if spec.dtype == "string" else spec.dtype)


def pad_of(dtype: str) -> int | str:
    """The value with which lists are padded: 0, or empty text."""
    return "" if dtype == "string" else 0


def pad(values: npt.NDArray[Any], lengths: npt.NDArray[np.integer[Any]], spec: ArraySpec) -> npt.NDArray[Any]:
    """Pad lists at their ends, and cut longer ones.

    Args:
        values: The items of all lists, one list after the other, ``[sum(lengths), ...]``.
        lengths: The length of each list.
        spec: The shape and type of a padded list.

    Returns:
        The lists, ``[len(lengths), *spec.shape]``.
    """
    shape = fixed(spec)
    padded = np.full((len(lengths), *shape), pad_of(spec.dtype), numpy_type(spec))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    positions = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = positions < shape[0]
    padded[rows[kept], positions[kept]] = values.reshape(-1, *shape[1:])[kept]
    return padded


def _chunks(count: int, size: int) -> Iterator[slice]:
    step = max(1, min(_CHUNK, _CHUNK_BYTES // max(1, size)))
    return (slice(first, first + step) for first in range(0, count, step))
