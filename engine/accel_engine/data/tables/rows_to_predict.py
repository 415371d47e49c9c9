"""Reads rows of a table to predict, as a run's own, and the last window of each series; without TensorFlow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import remarks
from accel_engine.data.data_options import ColumnFormat, DataOptions
from accel_engine.data.series.series import order_series
from accel_engine.data.series.series_parts import window_of
from accel_engine.data.tables.column_reading import check_columns, read_all_rows
from accel_engine.data.tables.preprocessing import unseen_notes
from accel_engine.data.tables.raw_inputs import RawInput, raw_inputs
from accel_engine.data.tables.table_series import series_arrays
from accel_engine.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class RowsToPredict:
    """The rows of a file."""

    names: tuple[str, ...]
    """Their numbers, from 1."""
    inputs: list[RawInput]
    """The raw inputs, all rows."""
    problems: dict[int, str]
    """Why a row cannot be predicted, by its place."""
    notes: tuple[str, ...]
    """What reading changed, and categories that training has not seen."""


def read_rows_to_predict(
    path: Path, columns: Sequence[ColumnFormat], categories: Mapping[str, Sequence[str]]
) -> RowsToPredict:
    """Read the rows of a file. Other columns of the file are not used.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        columns: How the columns of the training data were read.
        categories: The categories that training has seen, by the key of the input.

    Raises:
        DataError: The file cannot be read, or lacks a column.
    """
    names = [column.name for column in columns]
    found = read_all_rows(path, DataOptions(), {column.name: column for column in columns})
    check_columns(path, names, found.columns)
    inputs, problems = raw_inputs(found.columns, names), dict[int, str]()
    for column in (found.columns[name] for name in names):
        if column.values.dtype != object:
            for row in np.flatnonzero(np.isinf(column.values)).tolist():
                problems.setdefault(row, f"row {row + 1:,} of {path.name} has an infinite number in {column.name}")
    changes = (*found.row_changes, *(change for name in names for change in found.columns[name].changes))
    notes = (*remarks(found.notes, changes), *unseen_notes(categories, inputs, np.arange(found.rows)))
    return RowsToPredict(tuple(str(row + 1) for row in range(found.rows)), inputs, problems, notes)


def read_texts_to_predict(path: Path, names: Sequence[str]) -> npt.NDArray[np.object_]:
    """Read the texts of a table, ``[rows]``.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        names: The column that the model was trained on; none if its texts were files: then the only one of texts.

    Raises:
        DataError: The file cannot be read, or does not have this column.
    """
    found = read_all_rows(path, DataOptions(), {name: ColumnFormat(name, "text") for name in names})
    names = names or [name for name, column in found.columns.items() if column.kind == "text"]
    if len(names) != 1:
        raise DataError(f"{path.name} has {len(names)} columns of texts; the model needs one")
    check_columns(path, names, found.columns)
    return raw_inputs(found.columns, names)[0].values


def table_columns(path: Path, columns: Iterable[ColumnFormat]) -> Mapping[str, npt.NDArray[Any]]:
    """The columns of a table as arrays.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        columns: How the run's own were read.

    Raises:
        DataError: The file cannot be read.
    """
    return series_arrays(read_all_rows(path, DataOptions(), {column.name: column for column in columns}))


def last_windows(
    file: str, columns: Mapping[str, npt.NDArray[Any]], features: Sequence[str], options: DataOptions
) -> tuple[Sequence[str], npt.NDArray[np.float64] | None, dict[int, str]]:
    """The last window of each series.

    Args:
        file: The name of the file, for messages.
        columns: Its columns.
        features: The columns of a window.
        options: The window, and the columns of the time and the group.

    Returns:
        The names of the series; the windows that can be predicted, ``[readable, window, features]``, or ``None``; and
        why the others cannot be, by their place.

    Raises:
        DataError: A column is missing, or is not of numbers or times.
    """
    check_columns(Path(file), [*features, *(name for name in (options.time, options.group) if name)], columns)
    # Rows that are not finite matter only in the last window.
    names_of = tuple(features)
    options = replace(options, features=names_of, target=names_of, ignore=(), invalid_examples="skip")
    series = order_series(columns, options)
    matrix = np.stack([np.asarray(series.values[name], np.float64) for name in features], axis=1)
    ends = np.cumsum(series.lengths).tolist()
    group = options.group
    names = [str(columns[group][series.order[end - 1]]) for end in ends] if group else [file]
    window = window_of(options)
    windows, problems = [], dict[int, str]()
    for place, (end, length) in enumerate(zip(ends, series.lengths.tolist(), strict=True)):
        rows = slice(end - window, end)
        if length < window:
            problems[place] = f"{names[place]} has {length:,} rows; a window has {window:,}"
        elif not series.valid[rows].all():
            row = int(series.order[rows][~series.valid[rows]][0])
            problems[place] = f"row {row + 1:,} of {file}, in the last window of {names[place]}, is not finite"
        else:
            windows.append(matrix[rows])
    return names, np.stack(windows) if windows else None, problems
