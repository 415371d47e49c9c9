"""Describes and loads a table: its columns, and the matrix and targets that they become; without TensorFlow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.dataset import Dataset, LazyArray, Split, fits_in_memory
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.roles import Roles, choose_roles
from accel_engine.data.source import DatasetEntry
from accel_engine.data.splits import Rows, SplitRows
from accel_engine.data.standardization import Standardization, precision_warnings
from accel_engine.data.structure import ArraySpec, Batch, map_structure
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.columns import KINDS, Columns, TableColumn, describe_column, sample_rows
from accel_engine.data.tables.preprocessing import LazyMatrix, Preprocessing, learn, unseen_notes
from accel_engine.data.tables.table_series import describe_series, load_series
from accel_engine.data.tables.targets import TargetColumnForm, choose_form, target_scaling
from accel_engine.data.tables.valid_rows import ValidRows, read_validation_file, valid_rows
from accel_engine.data.targets import standardized_change
from accel_engine.errors import PlanError
from accel_engine.words import numbers

LARGE = 4 << 20
"""Files of more bytes than this are not read whole to describe them."""

_ROWS = 2000
"""Rows of large files that are looked at."""

_MAX_LISTED = 6
_MAX_LEFT_OUT = 5
"""Columns that are left out that are named."""

_SPLITS = ("training", "validation", "test")


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A table whose columns have their roles."""

    columns: Columns
    roles: Roles
    """The roles of the columns."""
    form: TargetColumnForm
    """How targets become arrays."""
    rows: ValidRows
    """The rows that can be used."""
    options: DataOptions
    """How it is read and split."""

    @classmethod
    def of(cls, path: Path, columns: Columns, options: DataOptions) -> "_Table":
        """Understand the columns of a file."""
        roles = _choose_roles(columns.columns, options)
        form = choose_form(columns.columns, roles.targets, options)
        return cls(columns, roles, form, valid_rows(path, columns.columns, roles, form, options), options)

    @property
    def task(self) -> str:
        return self.form.task if self.roles.targets else "reconstruction"

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.columns.notes, *_notes_of(self.roles, self.options))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes by reading, before anything is learned from the training rows."""
        columns, said = self.columns.columns, "predicted in seconds since 1970"
        dates = (name for name in self.roles.targets if columns[name].kind == "date")
        targets = (Change("read as numbers", f"dates of {name}", detail=said) for name in dates)
        unused = _left_out(columns, self.roles, self.options)
        return (*self.columns.changes_of(self.roles), *targets, *unused, *self.rows.changes)

    def split(self) -> SplitRows:
        return self.rows.split(self.roles, self.form, self.options)

    def learn(self, train: Rows) -> tuple[Preprocessing | None, list[Change]]:
        """Learn the preprocessing from the training rows; returns it (``None`` for texts) and what it changes."""
        if self.rows.text_input(self.options):
            return None, []
        formats = tuple(self.columns.columns[name].format for name in self.roles.inputs)
        learned, constant = learn(self.rows.inputs, train, formats)
        changes = list(self._filled())
        if unused := [name for name in constant if name in self.columns.columns]:  # parts of a date often are
            listed = numbers.listed(unused, _MAX_LISTED)
            changes.append(
                Change("left out", "columns", len(unused), None, f"{listed}: the same value in all training rows")
            )
        return learned, changes

    def _filled(self) -> Iterator[Change]:
        """How missing values of the inputs are filled."""
        columns = [column for name in self.roles.inputs if (column := self.columns.columns[name]).missing]
        if not columns:
            return
        counts = numbers.listed((f"{column.name} {column.missing:,}" for column in columns), _MAX_LISTED)
        kinds = {"number" if column.values.dtype != object else column.kind for column in columns}
        number = "; a number with the mean, and a feature says so" if "number" in kinds else ""
        category = "; a category with its own one" if kinds & {"category", "boolean"} else ""
        total = sum(column.missing for column in columns)
        yield Change("filled", "missing values", total, None, f"{counts}{number}{category}")


def _choose_roles(columns: Mapping[str, TableColumn], options: DataOptions) -> Roles:
    """Choose the inputs and targets of a table, the inputs in the order of the file.

    Without a common name of a target, the last column is predicted.

    Args:
        columns: The columns by name.
        options: The columns that the plan names.

    Raises:
        PlanError: A target or feature cannot be used.
        DataError: No column is left for the inputs.
    """
    usable = [name for name, column in columns.items() if column.kind in KINDS]
    keys = [name for name, column in columns.items() if column.kind == "key"]
    predicts = options.task != "reconstruction"
    # Numbers of the rows are better than nothing, as in y = f(x).
    roles = choose_roles(usable, options, None if predicts else (), spare=keys, predicts_last=predicts)
    for field, names in (("target", roles.targets), ("features", options.features)):
        for name in names:
            if columns[name].kind not in (*KINDS, "key"):
                raise PlanError(field, name, f"the column {_without_use(columns[name])}")
    return replace(roles, inputs=tuple(name for name in columns if name in roles.inputs))


def _left_out(columns: Mapping[str, TableColumn], roles: Roles, options: DataOptions) -> Iterator[Change]:
    """The columns that are left out although the plan does not say so."""
    if options.features:
        return
    used = {*roles.by_name(), *options.ignore}
    unused = [column for name, column in columns.items() if name not in used]
    for column in unused[:_MAX_LEFT_OUT]:
        yield Change("left out", f"column {column.name}", detail=f"it {_without_use(column)}")
    if len(unused) > _MAX_LEFT_OUT:
        yield Change("left out", "more columns without categories or numbers", len(unused) - _MAX_LEFT_OUT)


def _notes_of(roles: Roles, options: DataOptions) -> Iterator[str]:
    """Notes on choices that the plan leaves open."""
    if roles.targets and not options.target:
        yield f"the target is the column {roles.targets[0]}: choose another one with --target"
    if roles.weight:
        yield f"sample weights are in the column {roles.weight}"


def _without_use(column: TableColumn) -> str:
    if column.kind == "empty":
        return "has no values"
    if column.kind == "other":
        return "has values that cannot be used, such as lists or bytes"
    hint = "number" if column.integers else "category"
    return f"has a different value in most rows (use it with --kinds '{column.name}={hint}')"


def describe_table(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Complete an entry with columns, kinds, classes and counts; a large file's are of its first rows.

    Args:
        entry: Has the file's path.
        options: Targets, features, kinds of columns, and how the rows are split.

    Raises:
        DataError: The file cannot be read, or its first rows are invalid.
        PlanError: A column that the plan names is missing or cannot be used.
    """
    path = _path(entry)
    columns = read_columns(path, options, limit=_ROWS if path.stat().st_size > LARGE else None)
    if options.window is not None:
        return describe_series(entry, columns, options, limit=_ROWS)
    table = _Table.of(path, columns, options)
    if options.validation_data:
        read_validation_file(columns, table.roles, options, limit=_ROWS)
    is_classes, is_open = table.form.task == "classification", _may_be_classes(table)
    classes, counts, notes = table.form.class_names, list[int](), list(table.notes)
    if not columns.complete:
        notes.append(f"columns are described by the first {columns.rows:,} rows of {_rows(path, columns)}")
    elif is_classes:
        counts = np.bincount(table.rows.targets, minlength=len(classes)).tolist()
    roles = table.roles.by_name()
    described = replace(
        entry,
        kind="table",
        task="auto" if is_open else table.task,
        value_range=ValueRange("float32"),
        columns=tuple(describe_column(each, roles.get(name, "unused")) for name, each in columns.columns.items()),
        class_names=classes,
        class_counts=tuple(counts),
        classes=None if is_open or (is_classes and not columns.complete) else len(classes),
        samples=tuple(sample_rows(columns, table.roles.inputs, table.roles.targets)),
        notes=tuple(notes),
        changes=table.changes,
    )
    return _with_shapes(described, table)


def _may_be_classes(table: _Table) -> bool:
    """Whether the first rows of a file have only one number to predict, so that the others may have a second one."""
    if table.columns.complete or table.task != "regression" or table.options.task != "auto":
        return False
    targets = (table.columns.columns[name] for name in table.roles.targets)
    return any(each.integers and len(np.unique(each.values[np.isfinite(each.values)])) == 1 for each in targets)


def _with_shapes(entry: DatasetEntry, table: _Table) -> DatasetEntry:
    """Add shapes and counts of examples, and what training rows change, which only all rows tell."""
    is_text = table.rows.text_input(table.options) is not None
    inputs = ArraySpec((), "string") if is_text else ArraySpec((None,), "float32")
    entry = replace(entry, kind="text", value_range=None, shape=()) if is_text else entry
    if table.columns.complete:
        parts = table.split()
        learned, changes = table.learn(parts.train)
        if learned:
            features = len(learned.feature_names)
            inputs, entry = ArraySpec((features,), "float32"), replace(entry, shape=(features,))
        entry = replace(
            entry,
            examples=len(parts.train),
            validation_examples=None if table.options.validation_data else len(parts.validation),
            test_examples=len(parts.test),
            changes=(*entry.changes, *changes),
        )
    targets = map_structure(lambda array: ArraySpec(array.shape[1:], _single_type(array.dtype)), table.rows.targets)
    weights = None if table.rows.weights is None else ArraySpec((), "float32")
    return replace(entry, spec=Batch(inputs, inputs if targets is None else targets, weights))


def load_table(entry: DatasetEntry, options: DataOptions, progress: Progress = no_progress) -> Dataset:
    """Read all rows of a table.

    Args:
        entry: Has the file's path.
        options: Targets, features, kinds of columns, and how the rows are split.
        progress: Reports the number of rows read.

    Raises:
        DataError: The file cannot be read, or rows are invalid.
        PlanError: A column that the plan names is missing or cannot be used.
    """
    path = _path(entry)
    columns = read_columns(path, options, progress, like={each.name: each for each in options.formats})
    if options.window is not None:
        return load_series(entry.name, columns, options, progress)
    table = _Table.of(path, columns, options)
    rows, form, parts = table.rows, table.form, table.split()
    scaling = target_scaling(rows.targets, parts.train)
    learned, learned_changes = table.learn(parts.train)
    vocabularies = learned.vocabularies if learned else {}
    warnings = unseen_notes(vocabularies, rows.inputs, parts.validation)
    changes = [*table.changes, *learned_changes]
    train, validation, test = (_examples(rows, part, learned, scaling, progress) for part in parts)
    raw = {name: (rows.inputs, part) for name, part in zip(_SPLITS, parts, strict=True)}
    if options.validation_data:
        other_path, other_columns, other_roles = read_validation_file(columns, table.roles, options, progress)
        other = valid_rows(other_path, other_columns.columns, other_roles, form, options)
        every = np.arange(other.count)
        validation = _examples(other, every, learned, scaling, progress)
        raw["validation"] = other.inputs, every
        said = (*other_columns.notes, *other_columns.changes_of(other_roles))
        warnings = tuple(f"{other_path.name}: {each}" for each in said)
        warnings += unseen_notes(vocabularies, other.inputs, every, other_path)
        changes += other.changes
    if isinstance(rows.targets, dict):
        own = {name: each[parts.train] for name, each in rows.targets.items() if each.ndim == 2}
        warnings += precision_warnings((name, each[:, 0]) for name, each in own.items())
    if scaling is not None:
        changes.append(standardized_change(", ".join(table.roles.targets)))
    return Dataset(
        entry.name,
        train,
        validation if validation is not None and len(validation) else None,
        test if len(test) else None,
        class_names=form.class_names,
        task=table.task,
        kind="table" if learned else "text",
        feature_names=learned.feature_names if learned else table.roles.inputs,
        target_names=table.roles.targets,
        target_classes={name: names for name, names in form.classes.items() if names and form.task == "auto"},
        preprocess=learned,
        original=learned.original if learned else None,
        raw_inputs={name: LazyMatrix(learned, *raw[name]) for name in raw} if learned and options.keeps_raw else {},
        target_scaling=scaling,
        value_range=ValueRange("float32") if learned else ValueRange(),
        warnings=warnings,
        notes=table.notes,
        changes=tuple(dict.fromkeys(changes)),
    )


def _path(entry: DatasetEntry) -> Path:
    assert entry.path is not None  # noqa: S101 (an entry of a file has a path)
    return entry.path


def _examples(
    rows: ValidRows, part: Rows, learned: Preprocessing | None, scaling: Standardization | None, progress: Progress
) -> Split:
    """The examples of some rows; converted when they are needed if the matrix does not fit in memory.

    If nothing was learned, the inputs are the texts of the only column, as in a folder of text files.
    """
    if learned is None:
        inputs: npt.NDArray[Any] | LazyArray = rows.inputs[0].values[part]
    else:
        inputs = LazyMatrix(learned, rows.inputs, part)
        if fits_in_memory(inputs.nbytes):
            inputs = learned.apply(rows.inputs, part, progress)
    targets = map_structure(lambda array: _single(array[part], scaling), rows.targets)
    weights = None if rows.weights is None else rows.weights[part]
    return Split(inputs, inputs if targets is None else targets, weights)


def _single(targets: npt.NDArray[Any], scaling: Standardization | None) -> npt.NDArray[Any]:
    """Targets as float32, standardised where that would lose digits; classes as they are."""
    if targets.dtype != np.float64:
        return targets
    return targets.astype(np.float32) if scaling is None else scaling.apply(targets)


def _single_type(dtype: np.dtype[Any]) -> str:
    """The type of targets in training."""
    return "float32" if dtype == np.float64 else dtype.name


def _rows(path: Path, columns: Columns) -> str:
    """The number of rows of a file, estimated if need be."""
    if columns.file_rows is not None:
        return f"{columns.file_rows:,}"
    return f"about {float(f'{path.stat().st_size / max(columns.bytes, 1) * columns.rows:.2g}'):,.0f}"
