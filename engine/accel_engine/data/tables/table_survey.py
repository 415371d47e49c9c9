"""Describes a table from its header and first rows; without TensorFlow."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.structure import ArraySpec, Batch, map_structure
from accel_engine.data.tables.columns import Columns, read_columns
from accel_engine.data.tables.preprocessing import learn
from accel_engine.data.tables.roles import TableRoles, choose_table_roles
from accel_engine.data.tables.table_series import survey_series
from accel_engine.data.tables.table_survey_columns import describe_column, sample_rows
from accel_engine.data.tables.targets import TargetColumnForm, choose_form
from accel_engine.data.tables.valid_rows import ValidRows, read_validation_file, valid_rows

LARGE = 4 << 20
"""Files of more bytes than this are not read whole."""

_ROWS = 2000
"""Rows of large files that are looked at."""


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find columns, kinds, classes and counts; those of a large file are of its first rows.

    Args:
        entry: Has the file's path.
        options: Targets, features, kinds of columns, and how the rows are split.

    Raises:
        DataError: The file cannot be read, or its first rows are invalid.
        PlanError: A column that the plan names is missing or cannot be used.
    """
    assert entry.path is not None  # noqa: S101 (an entry of a file has a path)
    limit = _ROWS if entry.path.stat().st_size > LARGE else None
    table = read_columns(entry.path, options, limit=limit)
    if options.window is not None:
        return survey_series(entry, table, options, limit=_ROWS)
    roles = choose_table_roles(table.columns, options)
    form = choose_form(table.columns, roles.targets, options)
    rows = valid_rows(entry.path, table.columns, roles, form, options)
    if options.validation_data:
        read_validation_file(table, roles, options, limit=_ROWS)
    counts = np.bincount(rows.targets, minlength=len(form.class_names)) if form.task == "classification" else ()
    notes = [*table.notes, *roles.notes, *rows.notes]
    if not table.complete:
        notes.append(f"these are the first {table.rows:,} rows of {_rows(entry.path, table)}")
    surveyed = replace(
        entry,
        kind="table",
        task=form.task if roles.targets else "reconstruction",
        value_range=ValueRange("float32"),
        columns=tuple(describe_column(column, roles.of(name)) for name, column in table.columns.items()),
        class_names=form.class_names,
        class_counts=tuple(map(int, counts)),
        classes=len(form.class_names),
        samples=tuple(sample_rows(table, roles.inputs, roles.targets)),
        notes=tuple(dict.fromkeys(notes)),
    )
    return _with_shapes(surveyed, table, rows, roles, form, options)


def _with_shapes(
    entry: DatasetEntry,
    table: Columns,
    rows: ValidRows,
    roles: TableRoles,
    form: TargetColumnForm,
    options: DataOptions,
) -> DatasetEntry:
    """Add shapes and counts of examples, which only all rows tell."""
    is_text = rows.text_input(options) is not None
    inputs = ArraySpec((), "string") if is_text else ArraySpec((None,), "float32")
    entry = replace(entry, kind="text", value_range=None, shape=()) if is_text else entry
    if table.complete:
        parts = rows.split(roles, form, options)
        if not is_text:
            features = len(learn(rows.inputs, parts.train)[0].feature_names)
            inputs, entry = ArraySpec((features,), "float32"), replace(entry, shape=(features,))
        entry = replace(
            entry,
            examples=len(parts.train),
            validation_examples=None if options.validation_data else len(parts.validation),
            test_examples=len(parts.test),
        )
    targets = map_structure(lambda array: ArraySpec(array.shape[1:], _single(array.dtype)), rows.targets)
    weights = None if rows.weights is None else ArraySpec((), "float32")
    return replace(entry, spec=Batch(inputs, inputs if targets is None else targets, weights))


def _single(dtype: np.dtype[Any]) -> str:
    """The type of targets in training."""
    return "float32" if dtype == np.float64 else dtype.name


def _rows(path: Path, table: Columns) -> str:
    """The number of rows of a file, estimated if need be."""
    if table.file_rows is not None:
        return f"{table.file_rows:,}"
    return f"about {float(f'{path.stat().st_size / max(table.bytes, 1) * table.rows:.2g}'):,.0f}"
