"""The rows of a table that can be used: their inputs, targets and weights; without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, Progress, no_progress, or_skip
from accel_engine.data.roles import Roles
from accel_engine.data.splits import Rows, SplitRows, split_by_values, split_rows
from accel_engine.data.structure import Structure, map_structure
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.columns import Columns, TableColumn, cell_text
from accel_engine.data.tables.raw_inputs import RawInput, raw_inputs
from accel_engine.data.tables.targets import TargetColumnForm, target_arrays
from accel_engine.errors import DataError, PlanError
from accel_engine.text import suggestion
from accel_engine.user_paths import no_file, user_path
from accel_engine.words import numbers


@dataclass(frozen=True, slots=True, eq=False)
class ValidRows:
    """The rows of a file that have targets and finite numbers."""

    inputs: list[RawInput]
    """The raw inputs."""
    targets: Structure
    """The targets; ``None`` if nothing is predicted."""
    weights: npt.NDArray[np.float32] | None
    """Sample weights, float32 ``[rows]``; ``None`` without a column of them."""
    names: npt.NDArray[Any] | None
    """Values of the column that splits the table; ``None`` without one."""
    count: int
    """Number of rows."""
    changes: tuple[Change, ...]
    """The rows that are left out."""

    def text_input(self, options: DataOptions) -> RawInput | None:
        """The only input, if it is a text and the model takes texts as they are; ``None`` otherwise."""
        is_text = len(self.inputs) == 1 and self.inputs[0].kind == "text"
        return self.inputs[0] if is_text and options.takes_texts and options.task != "reconstruction" else None

    def split(self, roles: Roles, form: TargetColumnForm, options: DataOptions) -> SplitRows:
        """Split the rows as the plan says; rows of a table that has a time are split in order.

        Raises:
            PlanError: The split does not fit the table.
            DataError: All rows are of one class.
        """
        if form.task == "classification" and len(form.class_names) < 2:
            raise DataError(f"the target {roles.targets[0]} has one value only, {form.class_names[0]!r}")
        if self.names is not None:
            return split_by_values(self.names.tolist(), roles.split)
        if roles.time and options.split == "auto":
            options = replace(options, split="ordered")
        return split_rows(self.count, options, self.targets if form.task == "classification" else None)


def valid_rows(
    path: Path, columns: Mapping[str, TableColumn], roles: Roles, form: TargetColumnForm, options: DataOptions
) -> ValidRows:
    """Take the rows that can be used, in the order of the column that orders them.

    Args:
        path: The file, for messages.
        columns: Its columns.
        roles: What they are for.
        form: How targets become arrays.
        options: Whether invalid rows are left out; otherwise they are an error.

    Raises:
        DataError: A row has no target or a number that is not finite, or no row is left.
    """
    rows = len(next(iter(columns.values())).values)
    targets, has_targets = target_arrays({name: columns[name] for name in roles.targets}, form, rows)
    has_values = ~np.any([columns[name].missing_rows for name in roles.targets], axis=0)
    unknown = "no number" if form.task == "regression" else "a class that the training data does not have"
    unseen = ~has_targets & has_values
    if form.task != "regression" and unseen.any():
        row = int(np.flatnonzero(unseen)[0])
        unknown += f", such as {', '.join(cell_text(columns[name], row) for name in roles.targets)},"
    target = f"in the target, {_columns(roles.targets)}"
    problems = [(~has_targets & ~has_values, f"no value {target}"), (unseen, f"{unknown} {target}")]
    numbers = [name for name in (*roles.inputs, roles.weight) if name and columns[name].values.dtype != object]
    problems += [(np.isinf(columns[name].values), f"an infinite number in {_columns((name,))}") for name in numbers]
    weights = None
    if roles.weight:
        weights = _sample_weights(path, columns[roles.weight])
        problems.append((~(weights >= 0), f"no weight of 0 or more in {_columns((roles.weight,))}"))
    if roles.time:
        problems.append((columns[roles.time].missing_rows, f"no value in {_columns((roles.time,))}"))
    kept, changes = _drop(path, problems, rows, options)
    if roles.time:
        kept = kept[np.argsort(columns[roles.time].values[kept], kind="stable")]
    inputs = raw_inputs(columns, roles.inputs)
    return ValidRows(
        [replace(raw, values=raw.values[kept]) for raw in inputs],
        map_structure(lambda array: array[kept], targets),
        weights if weights is None else weights[kept],
        columns[roles.split].values[kept] if roles.split in columns else None,
        len(kept),
        changes,
    )


def read_validation_file(
    table: Columns, roles: Roles, options: DataOptions, progress: Progress = no_progress, limit: int | None = None
) -> tuple[Path, Columns, Roles]:
    """Read the file of a plan's ``validation_data``, whose columns have the kinds of the training file.

    Args:
        table: The training file's columns.
        roles: What they are for.
        options: Has the path.
        progress: Reports the number of rows read.
        limit: Read this many rows at most; all by default.

    Returns:
        The path, its columns, and what they are for.

    Raises:
        PlanError: There is no such file, or it lacks a column.
        DataError: The file cannot be read.
    """
    path = user_path(options.validation_data)
    if why := no_file(path):
        raise PlanError("validation_data", options.validation_data, why)
    # The plan may name columns, such as those to ignore, that this file does not need to have.
    free = replace(options, target=(), features=(), ignore=(), kinds=(), time="", group="", split="auto")
    found = read_columns(path, free, progress, limit=limit, like=table.formats)
    lacking = [name for name in (*roles.inputs, *roles.targets) if name not in found.columns]
    if lacking:
        reason = f"the file has no column {lacking[0]}; {suggestion(lacking[0], found.columns)}"
        raise PlanError("validation_data", options.validation_data, reason)
    weight = roles.weight if roles.weight in found.columns else ""
    return path, found, replace(roles, split="", time="", weight=weight)


def _sample_weights(path: Path, column: TableColumn) -> npt.NDArray[np.float32]:
    """The sample weights of a column.

    Raises:
        DataError: The column has other values than numbers.
    """
    known = np.flatnonzero(~column.missing_rows)
    if len(known) and (column.kind == "date" or column.values.dtype == object):
        found = (
            f"{path}: the column {column.name} has {cell_text(column, int(known[0]))}, but sample weights are numbers"
        )
        raise DataError(f"{found} of 0 or more: rename it, or leave it out with --ignore {column.name}")
    return column.values.astype(np.float32)


def _drop(
    path: Path, problems: list[tuple[npt.NDArray[np.bool_], str]], rows: int, options: DataOptions
) -> tuple[Rows, tuple[Change, ...]]:
    """The rows without a problem, and what is left out for each problem."""
    keep, changes = np.ones(rows, bool), list[Change]()
    for wrong, text in problems:
        count = int(wrong.sum())
        if not count:
            continue
        row = int(np.flatnonzero(wrong)[0]) + 1
        if options.invalid_examples != "skip":
            more = f", and {count - 1:,} more" if count > 1 else ""
            raise or_skip(DataError(f"{path}: row {row:,} has {text}{more}"))
        keep &= ~wrong
        changes.append(Change("left out", f"rows of {path.name}", count, rows, text))
    if not keep.any():
        raise DataError(f"{path} has no rows that can be used: {'; '.join(map(str, changes))}")
    return np.flatnonzero(keep), tuple(changes)


def _columns(names: tuple[str, ...]) -> str:
    return f"the {numbers.plural(len(names), 'column')} {', '.join(names)}"
