"""Reads a table, a CSV, TSV, Parquet or JSON lines file, as a matrix of features and its targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, LazyArray, Split, fits_in_memory
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.splits import Rows
from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import map_structure
from accel_engine.data.tables.columns import Columns, read_columns
from accel_engine.data.tables.preprocessing import learn, unseen_notes
from accel_engine.data.tables.preprocessing_model import LazyMatrix, PreprocessingModel
from accel_engine.data.tables.roles import TableRoles, choose_table_roles
from accel_engine.data.tables.table_series import read_series
from accel_engine.data.tables.targets import choose_form, target_scaling
from accel_engine.data.tables.valid_rows import ValidRows, read_validation_file, valid_rows
from accel_engine.data.targets import standardized

_MAX_LISTED = 6
_SPLITS = ("training", "validation", "test")


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a table.

    Args:
        entry: Has the file's path.
        options: Targets, features, kinds of columns, and how the rows are split.
        progress: Reports the number of rows read.

    Raises:
        DataError: The file cannot be read, or rows are invalid.
        PlanError: A column that the plan names is missing or cannot be used.
    """
    assert entry.path is not None  # noqa: S101 (an entry of a file has a path)
    table = read_columns(entry.path, options, progress, like={each.name: each for each in options.formats})
    if options.window is not None:
        return read_series(entry.name, table, options, progress)
    roles = choose_table_roles(table.columns, options)
    form = choose_form(table.columns, roles.targets, options)
    rows = valid_rows(entry.path, table.columns, roles, form, options)
    parts = rows.split(roles, form, options)
    scaling = target_scaling(rows.targets, parts.train)
    notes = [*table.notes, *roles.notes, *rows.notes]
    model, warnings = None, tuple[str, ...]()
    if not rows.text_input(options):
        learned, constant = learn(rows.inputs, parts.train)
        model = PreprocessingModel(learned, tuple(table.columns[name].format for name in roles.inputs))
        notes += _missing(table, roles)
        if unused := [name for name in constant if name in table.columns]:  # parts of a date are often constant
            notes.append(f"left out {_listed(unused)}: the same value in all training rows")
        warnings = unseen_notes(learned.vocabularies, rows.inputs, parts.validation)
    train, validation, test = (_examples(rows, part, model, scaling, progress) for part in parts)
    raw = {name: (rows.inputs, part) for name, part in zip(_SPLITS, parts, strict=True)}
    if options.validation_data:
        path, other_table, other_roles = read_validation_file(table, roles, options, progress)
        other = valid_rows(path, other_table.columns, other_roles, form, options)
        every = np.arange(other.count)
        validation = _examples(other, every, model, scaling, progress)
        raw["validation"] = other.inputs, every
        warnings = tuple(f"{path.name}: {note}" for note in other_table.notes)
        warnings += unseen_notes(model.learned.vocabularies, other.inputs, every, path) if model else ()
        notes += other.notes
    if scaling is not None:
        notes.append(str(standardized(", ".join(roles.targets))))
    return Dataset(
        entry.name,
        train,
        validation if validation is not None and len(validation) else None,
        test if len(test) else None,
        class_names=form.class_names,
        task=form.task if roles.targets else "reconstruction",
        kind="table" if model else "text",
        feature_names=model.learned.feature_names if model else roles.inputs,
        target_names=roles.targets,
        target_classes={name: names for name, names in form.classes.items() if names and form.task == "auto"},
        preprocess=model,
        original=model.learned.original if model else None,
        raw_inputs={name: LazyMatrix(model, *raw[name]) for name in raw} if model and options.keeps_raw else {},
        target_scaling=scaling,
        value_range=ValueRange("float32") if model else ValueRange(),
        warnings=warnings,
        notes=tuple(dict.fromkeys(notes)),
    )


def _examples(
    rows: ValidRows, part: Rows, model: PreprocessingModel | None, scaling: Standardization | None, progress: Progress
) -> Split:
    """The examples of some rows; converted when they are needed if the matrix does not fit in memory.

    Without a model, the inputs are the texts of the only column, as those of a folder of text files are.
    """
    if model is None:
        inputs: npt.NDArray[Any] | LazyArray = rows.inputs[0].values[part]
    else:
        inputs = LazyMatrix(model, rows.inputs, part)
        if fits_in_memory(inputs.nbytes):
            inputs = model.apply(rows.inputs, part, progress)
    targets = map_structure(lambda array: _single(array[part], scaling), rows.targets)
    weights = None if rows.weights is None else rows.weights[part]
    return Split(inputs, inputs if targets is None else targets, weights)


def _single(targets: npt.NDArray[Any], scaling: Standardization | None) -> npt.NDArray[Any]:
    """Targets as float32, standardised where that would lose digits; classes as they are."""
    if targets.dtype != np.float64:
        return targets
    return targets.astype(np.float32) if scaling is None else scaling.apply(targets)


def _missing(table: Columns, roles: TableRoles) -> list[str]:
    """A note on missing values of the inputs."""
    columns = [table.columns[name] for name in roles.inputs if table.columns[name].missing]
    if not columns:
        return []
    counts = _listed([f"{column.name} {column.missing:,}" for column in columns])
    kinds = {"number" if column.values.dtype != object else column.kind for column in columns}
    number = "; a missing number becomes the mean, and has a feature that says so" if "number" in kinds else ""
    category = "; a missing category is a category of its own" if kinds & {"category", "boolean"} else ""
    return [f"missing values: {counts}{number}{category}"]


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:_MAX_LISTED])) + (", …" if len(names) > _MAX_LISTED else "")
