"""Reads rows of a table to predict: as a run's own, or the raw columns that a model file takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_file import opened
from accel_engine.data.data_options import DataOptions
from accel_engine.data.series.array_series import column_names
from accel_engine.data.structure import ArraySpec, map_structure
from accel_engine.data.tables import rows_to_predict
from accel_engine.data.tables.column_reading import check_columns, read_all_rows
from accel_engine.data.tables.preprocessing import unseen_notes
from accel_engine.data.tables.raw_inputs import (
    JOINED_CATEGORIES,
    NUMBERS,
    arrays_of,
    check_numbers,
    formats_for,
    raw_inputs,
)
from accel_engine.errors import DataError
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import DataFormat
from accel_engine.run.diagnostics.data_items import TableFormat
from accel_engine.trained.prediction.examples import Examples, without_problems
from accel_engine.training.reporting.data_formats import preprocessing_of, standardization


def read_rows(path: Path, table: TableFormat) -> Examples:
    """Read the rows of a file, preprocessed as the run's own.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        table: The columns, and what was learned from the training rows. Other columns of the file are not used.

    Raises:
        DataError: The file cannot be read, or lacks a column.
    """
    found = rows_to_predict.read_rows_to_predict(path, table.columns, table.vocabularies)
    matrix = preprocessing_of(table).apply(found.inputs, np.arange(len(found.names)))
    kept = without_problems(map_structure(np.asarray, matrix), found.problems)
    return Examples(found.names, kept, found.problems, found.notes)


def read_raw_columns(
    path: Path, specs: Mapping[str, ArraySpec], categories: Mapping[str, Sequence[str]] | None = None
) -> Examples:
    """Read the raw columns that a ``model.keras`` of a table takes, which has its preprocessing inside, by their names.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        specs: The spec of each input, ``[1]``: texts or numbers.
        categories: The categories of inputs, where the model tells them.

    Raises:
        DataError: The file cannot be read, or lacks a column.
    """
    categories = categories or {}
    types = {key: spec.dtype for key, spec in specs.items()}
    columns = read_all_rows(path, DataOptions())
    given = {each.key: each.name for each in raw_inputs(columns.columns, columns.columns)}
    check_columns(path, {*types, *categories} - {NUMBERS, JOINED_CATEGORIES}, given)
    columns = read_all_rows(path, DataOptions(), formats_for(columns.columns, types, categories))
    raw = raw_inputs(columns.columns, columns.columns)
    check_numbers(path.name, raw, specs[NUMBERS].shape[-1] or 0 if NUMBERS in specs else 0)
    inputs, problems, names = arrays_of(raw, types), dict[int, str](), dict[str, None]()  # names in order
    for key, array in inputs.items():
        kind = {NUMBERS: "number", JOINED_CATEGORIES: "category"}.get(key)
        own = [each.name for each in raw if each.kind == kind] if kind else [given[key]]
        names |= dict.fromkeys(own)
        for row, place in np.argwhere(np.isinf(array)).tolist() if types[key] != "string" else ():
            problems.setdefault(row, f"row {row + 1:,} of {path.name} has an infinite number in {own[place]}")
    changes = [change for name in names if name in columns.columns for change in columns.columns[name].changes]
    notes = (*map(str, changes), *unseen_notes(categories, raw, np.arange(columns.rows)))
    rows = tuple(str(row + 1) for row in range(columns.rows))
    return Examples(rows, without_problems(inputs, problems), problems, notes)


def read_text_column(path: Path, names: Sequence[str], spec: ArraySpec) -> Examples:
    """Read the texts of a table, an example for each row.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        names: The column that the model was trained on; none if its texts were files: then the only one of texts.
        spec: ``[]`` or ``[1]``.

    Raises:
        DataError: The file cannot be read, or does not have this column.
    """
    texts = rows_to_predict.read_texts_to_predict(path, names)
    rows = tuple(str(row + 1) for row in range(len(texts)))
    return Examples(rows, texts.reshape(len(texts), *(1 for _ in spec.shape)))


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
    columns = rows_to_predict.table_columns(path, form.columns) if is_table else _arrays(path)
    names, windows, problems = rows_to_predict.last_windows(path.name, columns, form.feature_names, plan.data_options)
    if windows is not None and (units := standardization(form.input_units)):
        windows = (windows - units.mean) / units.scale
    return Examples(names, None if windows is None else windows.astype(np.float32), problems)


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The columns of a file's arrays, named as in the run."""
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
