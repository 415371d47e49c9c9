"""Reads the columns of a table as NumPy arrays; without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from accel_engine.data.column_format import ColumnFormat
from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.tables.column_names import check_names, declared_kinds
from accel_engine.data.tables.column_reading import ColumnReading
from accel_engine.data.tables.table_column import TableColumn
from accel_engine.data.tables.table_file import read_cells
from accel_engine.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a file, or of its first rows.

    Attributes:
        columns: The columns by name, in the order of the file.
        rows: Number of rows that were read.
        complete: Whether these are all rows of the file.
        file_rows: Number of rows of the file; ``None`` if only reading all of it can tell.
        bytes: Size of these rows in the file, about; 0 if unknown.
        invalid: Number of rows that were left out, as they cannot be parsed.
        notes: Notes for the user.
    """

    columns: dict[str, TableColumn]
    rows: int
    complete: bool
    file_rows: int | None
    bytes: int
    invalid: int
    notes: tuple[str, ...]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The values of each column."""
        return {name: column.values for name, column in self.columns.items()}

    @property
    def formats(self) -> dict[str, ColumnFormat]:
        """How each column was read."""
        return {name: column.format for name, column in self.columns.items()}


def read_columns(
    path: Path,
    options: DataOptions,
    progress: Progress = no_progress,
    *,
    limit: int | None = None,
    like: Mapping[str, ColumnFormat] | None = None,
) -> Columns:
    """Read a CSV, TSV, Parquet or JSON lines file.

    Args:
        path: The file.
        options: Columns that the plan names, their kinds, and whether to skip rows that cannot be parsed.
        progress: Reports the number of rows read.
        limit: Read so many rows at most; all by default.
        like: Columns of the training file: this file's are read as the same kinds of values.

    Raises:
        DataError: PyArrow is not installed, the file cannot be read, or a column has no value of its kind.
        PlanError: The file lacks a column that the plan names, or a kind is unknown.
    """
    cells = read_cells(path, skip_invalid=options.invalid_examples == "skip", limit=limit, progress=progress)
    check_names(options, cells.table.column_names)
    kinds = declared_kinds(options)
    columns = {}
    for position, name in enumerate(cells.table.column_names):
        may_count = position == 0 and options.window is None
        reading = ColumnReading(name, (like or {}).get(name), kinds.get(name, ""), cells.decimal_comma, may_count)
        try:
            columns[name] = reading.convert(cells.table[name])
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    notes = (*cells.notes, *(note for column in columns.values() for note in column.notes))
    return Columns(columns, cells.table.num_rows, cells.complete, cells.rows, cells.bytes, cells.invalid, notes)
