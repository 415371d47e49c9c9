"""Reads the raw columns that a ``model.keras`` of a table takes: it has its preprocessing inside."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from accel_engine.data.data_options import DataOptions
from accel_engine.data.structure import ArraySpec
from accel_engine.data.tables.raw_inputs import MISSING_TEXT, raw_inputs
from accel_engine.training.prediction.examples import Examples, without_problems
from accel_engine.training.prediction.table_examples import check_columns, read_all_rows


def read_raw_columns(path: Path, specs: Mapping[str, ArraySpec]) -> Examples:
    """Read the columns of a file by the names of a model's inputs.

    Args:
        path: A CSV, TSV, Parquet or JSON lines file.
        specs: The spec of each input, ``[1]``: texts or numbers.

    Raises:
        DataError: The file cannot be read, or lacks a column.
    """
    columns = read_all_rows(path, DataOptions()).columns
    found = {raw.key: raw for raw in raw_inputs(columns, columns)}
    check_columns(path, specs, found)
    text = [found[key].name for key, spec in specs.items() if spec.dtype == "string"]
    kinds = tuple(f"{name}=category" for name in text if columns[name].kind not in ("category", "text"))
    if kinds:  # such as a category whose values are all numbers here
        columns = read_all_rows(path, DataOptions(kinds=kinds)).columns
        found = {raw.key: raw for raw in raw_inputs(columns, columns)}
    inputs, problems = {}, dict[int, str]()
    for key, spec in specs.items():
        values = found[key].values
        if spec.dtype != "string":
            values = np.array([np.nan if value == MISSING_TEXT else value for value in values], np.float32)
            for row in np.flatnonzero(np.isinf(values)).tolist():
                problems.setdefault(row, f"row {row + 1:,} of {path.name} has an infinite number in {found[key].name}")
        inputs[key] = values[:, np.newaxis]
    rows = tuple(str(row + 1) for row in range(len(values)))
    return Examples(rows, without_problems(inputs, problems), problems)
