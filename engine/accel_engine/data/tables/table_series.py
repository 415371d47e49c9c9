"""Reads and describes time series in tables; without TensorFlow."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import ColumnFormat, DataOptions, Progress, no_progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.series.series import choose_series_roles, order_series
from accel_engine.data.series.series_parts import describe_windows
from accel_engine.data.series.windowed import windowed
from accel_engine.data.source import DatasetEntry
from accel_engine.data.splits import split_by_values
from accel_engine.data.tables.columns import Columns, TableColumn, describe_column, sample_rows
from accel_engine.data.tables.valid_rows import read_validation_file
from accel_engine.errors import FieldValue

_NUMERIC = ("number", "boolean")
"""Kinds of columns that windows can have."""


def load_series(name: str, table: Columns, options: DataOptions, progress: Progress) -> Dataset:
    """Make windows of a table.

    Args:
        name: The dataset's name, for titles.
        table: All rows of the file.
        options: The plan's window, horizon, time, group, columns and split.
        progress: Reports the number of rows read of a file with validation data.

    Raises:
        DataError: A column or row cannot be used.
        PlanError: An option does not fit the table, or there are too few rows.
    """
    return _windows(name, table, _validation(table, options, progress), options)


def describe_series(entry: DatasetEntry, table: Columns, options: DataOptions, limit: int | None) -> DatasetEntry:
    """Complete an entry with columns and windows, which are counted if all rows are known.

    Args:
        entry: The entry of the file.
        table: The rows of the file, or its first rows.
        options: The plan's window, horizon, time, group, columns and split.
        limit: Rows of a file with validation data to look at; all by default.

    Raises:
        DataError: A column or row cannot be used.
        PlanError: An option does not fit the table, or there are too few rows.
    """
    own_options = _without_unused(table, options)
    arrays = series_arrays(table)
    roles = choose_series_roles(tuple(arrays), own_options)
    validation = _validation(table, options, limit=limit)
    notes, changes = (*table.notes, *_notes(table, options)), tuple(_changes(table, options))
    if table.complete and (validation is None or validation.complete):
        made = _windows(entry.name, table, validation, options)
        described = describe_windows(entry, roles, None, own_options)
        notes, changes = made.notes, made.changes
        counts = [len(split) if isinstance(split, Split) else 0 for split in (made.train, made.validation, made.test)]
        described = replace(described, examples=counts[0], validation_examples=counts[1], test_examples=counts[2])
    else:
        order_series(arrays, own_options)  # for its errors
        rows = None if options.split_column else table.file_rows
        described = describe_windows(entry, roles, rows, own_options)
    known = roles.by_name()
    listed = (describe_column(column, known.get(name, "unused")) for name, column in table.columns.items())
    shown = sample_rows(table, roles.inputs, ())
    return replace(described, columns=tuple(listed), samples=tuple(shown), notes=notes, changes=changes)


def _windows(name: str, table: Columns, validation: Columns | None, options: DataOptions) -> Dataset:
    parts = None
    if column := options.split_column:
        parts = np.zeros(table.rows, np.intp)
        for number, rows in enumerate(split_by_values(table.columns[column].values.tolist(), column)):
            parts[rows] = number
    others = None if validation is None else series_arrays(validation)
    dataset = windowed(name, series_arrays(table), _without_unused(table, options), validation=others, parts=parts)
    notes, columns = (*table.notes, *_notes(table, options), *dataset.notes), _read_columns(dataset, table, options)
    changes = (*_changes(table, options), *dataset.changes)
    return replace(dataset, notes=notes, changes=changes, columns=columns)


def _read_columns(dataset: Dataset, table: Columns, options: DataOptions) -> tuple[ColumnFormat, ...]:
    """How the columns were read that a forecast needs."""
    used = {*dataset.feature_names, options.time, options.group}
    return tuple(column for name, column in table.formats.items() if name in used)


def _validation(
    table: Columns, options: DataOptions, progress: Progress = no_progress, limit: int | None = None
) -> Columns | None:
    """The columns of the file with validation data, if the plan has one."""
    if not options.validation_data:
        return None
    roles = choose_series_roles(tuple(table.columns), _without_unused(table, options))
    return read_validation_file(table, roles, options, progress, limit)[1]


def _without_numbers(table: Columns, options: DataOptions) -> list[TableColumn]:
    """The columns that the plan does not name and that windows cannot have."""
    named = {options.time, options.group, options.split_column, *options.target, *options.features, *options.ignore}
    return [column for name, column in table.columns.items() if name not in named and column.kind not in _NUMERIC]


def _without_unused(table: Columns, options: DataOptions) -> DataOptions:
    """Options that also ignore columns that cannot be inputs."""
    unused = (column.name for column in _without_numbers(table, options))
    return replace(options, ignore=(*options.ignore, *unused))


def _changes(table: Columns, options: DataOptions) -> Iterator[Change]:
    """The changes by reading: its own, and columns that are left out."""
    unused = _without_numbers(table, options)
    yield from table.changes_of(choose_series_roles(tuple(table.columns), _without_unused(table, options)))
    if unused and not options.features:
        listed = ", ".join(f"{column.name} ({column.kind})" for column in unused)
        yield Change("left out", "columns without numbers", len(unused), None, listed)


def _notes(table: Columns, options: DataOptions) -> Iterator[str]:
    unused = _without_numbers(table, options)
    date = next((column.name for column in unused if column.kind == "date"), "")
    if date and not options.time:
        yield f"rows are in the order of the file; {FieldValue('time', repr(date))} puts them in order"


def series_arrays(table: Columns) -> dict[str, npt.NDArray[Any]]:
    """The values of each column: numbers, 0 and 1 for booleans, dates as ``datetime64``, or texts."""
    return {name: _values(column) for name, column in table.columns.items()}


def _values(column: TableColumn) -> npt.NDArray[Any]:
    values = column.values
    if column.kind == "date":
        values = (values * 1e6).round().astype("datetime64[us]")
    elif column.kind == "boolean":
        values = column.truths
    return values
