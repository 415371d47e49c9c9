"""Reads the raw columns that a ``model.keras`` of a table takes: it has its preprocessing inside."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from accel_engine.data.data_options import DataOptions
from accel_engine.data.structure import ArraySpec
from accel_engine.data.tables.columns import Columns
from accel_engine.data.tables.preprocessing import unseen_notes
from accel_engine.data.tables.raw_inputs import RawInput, formats_for, raw_inputs
from accel_engine.trained.prediction.examples import Examples, without_problems
from accel_engine.trained.prediction.table_examples import check_columns, read_all_rows


def read_raw_columns(
    path: Path, specs: Mapping[str, ArraySpec], categories: Mapping[str, Sequence[str]] | None = None
) -> Examples:
    """Read the columns of a file by the names of a model's inputs.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        specs: The spec of each input, ``[1]``: texts or numbers.
        categories: The categories of inputs, where the model tells them.

    Raises:
        DataError: The file cannot be read, lacks a column, or has no category that the model knows.
    """
    categories = categories or {}
    columns = read_all_rows(path, DataOptions())
    check_columns(path, specs, _by_key(columns))
    formats = formats_for(columns.columns, {key: spec.dtype for key, spec in specs.items()}, categories)
    found = _by_key(columns := read_all_rows(path, DataOptions(), formats))
    inputs, problems = {}, dict[int, str]()
    for key, spec in specs.items():
        values = found[key].values
        if spec.dtype != "string":
            values = values.astype(spec.dtype)
            for row in np.flatnonzero(np.isinf(values)).tolist():
                problems.setdefault(row, f"row {row + 1:,} of {path.name} has an infinite number in {found[key].name}")
        inputs[key] = values[:, np.newaxis]
    rows = tuple(str(row + 1) for row in range(columns.rows))
    taken = {found[key].name for key in specs}
    notes = [note for name in taken & columns.columns.keys() for note in columns.columns[name].notes]
    notes += unseen_notes(categories, list(found.values()), np.arange(columns.rows), path)
    return Examples(rows, without_problems(inputs, problems), problems, tuple(notes))


def _by_key(columns: Columns) -> dict[str, RawInput]:
    return {raw.key: raw for raw in raw_inputs(columns.columns, columns.columns)}
