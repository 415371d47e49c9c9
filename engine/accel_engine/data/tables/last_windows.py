"""Finds the last window of each series of a table, from which a model forecasts; without TensorFlow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.column_format import ColumnFormat
from accel_engine.data.data_options import DataOptions
from accel_engine.data.series.series import order_series
from accel_engine.data.series.series_parts import window_of
from accel_engine.data.tables.column_reading import check_columns, read_all_rows
from accel_engine.data.tables.table_series import series_arrays


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
        options: Have the window, the time and the group.

    Returns:
        The names of the series; the windows that can be predicted, ``[readable, window, features]``, or ``None``; and
        why the others cannot be, by their place.

    Raises:
        DataError: A column is missing.
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
