"""Reads the last window of each time series of a file, whose next rows are to be predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_file import opened
from accel_engine.data.data_options import DataOptions
from accel_engine.data.series.array_series import column_names
from accel_engine.data.series.series import order_series
from accel_engine.data.series.series_parts import window_of
from accel_engine.data.tables.table_series import series_arrays
from accel_engine.errors import DataError
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import DataFormat
from accel_engine.trained.prediction.examples import Examples
from accel_engine.trained.prediction.table_examples import check_columns, read_all_rows
from accel_engine.training.reporting.data_formats import standardization


def read_last_windows(path: Path, form: DataFormat, plan: Plan) -> Examples:
    """Read the last window of each series, standardised as the run's own.

    Args:
        path: A table, or an ``.npz`` or ``.npy`` file.
        form: Has the columns and their statistics.
        plan: Has the window, the time and the group.

    Raises:
        DataError: The file cannot be read, or lacks a column.
    """
    is_table = path.suffix.lower() not in (".npz", ".npy")
    columns = _table(path, form) if is_table else _arrays(path)
    named = [*form.feature_names, *(name for name in (plan.time, plan.group) if name)]
    check_columns(path, named, columns)
    # Rows that are not finite matter only in the last window.
    options = replace(
        plan.data_options,
        features=form.feature_names,
        target=form.feature_names,
        ignore=(),
        invalid_examples="skip",
    )
    series = order_series(columns, options)
    matrix = np.stack([np.asarray(series.values[name], np.float64) for name in form.feature_names], axis=1)
    if units := standardization(form.input_units):
        matrix = (matrix - units.mean) / units.scale
    names = _names(columns, series.order, series.lengths, plan.group) if plan.group else [path.name]
    window, ends = window_of(options), np.cumsum(series.lengths)
    windows, problems = [], {}
    for place, (end, length) in enumerate(zip(ends.tolist(), series.lengths.tolist(), strict=True)):
        rows = slice(end - window, end)
        if length < window:
            problems[place] = f"{names[place]} has {length:,} rows; a window has {window:,}"
        elif not series.valid[rows].all():
            row = int(series.order[rows][~series.valid[rows]][0])
            problems[place] = f"row {row + 1:,} of {path.name}, in the last window of {names[place]}, is not finite"
        else:
            windows.append(matrix[rows].astype(np.float32))
    return Examples(names, np.stack(windows) if windows else None, problems)


def _table(path: Path, form: DataFormat) -> Mapping[str, npt.NDArray[Any]]:
    return series_arrays(read_all_rows(path, DataOptions(), {column.name: column for column in form.columns}))


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The columns of a file's arrays, named as those of the run's."""
    with opened(path) as file:
        arrays = {name: file.read(name) for name in file.headers}
    if not arrays:
        raise DataError(f"{path} has no arrays")
    names = column_names({name: array.shape for name, array in arrays.items()})
    return {
        column: arrays[name].reshape(len(arrays[name]), -1)[:, index]
        for name, columns in names.items()
        for index, column in enumerate(columns)
    }


def _names(
    columns: Mapping[str, npt.NDArray[Any]],
    order: npt.NDArray[np.intp],
    lengths: npt.NDArray[np.intp],
    group: str,
) -> Sequence[str]:
    """The group of each series."""
    return [str(columns[group][order[end - 1]]) for end in np.cumsum(lengths).tolist()]
