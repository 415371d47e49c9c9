"""Converts the target columns of a table to arrays; without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions
from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import Structure
from accel_engine.data.tables.columns import TableColumn
from accel_engine.data.targets import number_scaling
from accel_engine.errors import PlanError

FEW_CLASSES = 10
"""The most different values with which whole numbers are classes."""

CLASS_NAMES = ("class", "classes", "label", "labels")
"""Names, in lower case, of columns with classes, even if these are many numbers."""

ROWS_PER_CLASS = 5
"""Whole numbers are classes only if each occurs so often on average."""

MAX_CLASSES = 1000
"""Texts with more different values cannot be classes."""


@dataclass(frozen=True, slots=True)
class TargetColumnForm:
    """How target columns become arrays."""

    task: str
    """``classification``, ``multi-label``, ``regression``, or ``auto`` for several targets of different kinds."""
    classes: Mapping[str, tuple[str, ...]]
    """The class names of each target column; empty for numbers."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names for a whole dataset: classes of the only target, or the columns of several labels."""
        if self.task == "multi-label":
            return tuple(self.classes)
        return next(iter(self.classes.values()), ()) if self.task == "classification" else ()


def choose_form(columns: Mapping[str, TableColumn], targets: tuple[str, ...], options: DataOptions) -> TargetColumnForm:
    """Tell classification from regression by the values of the targets, unless the plan's ``task`` does.

    Args:
        columns: The columns by name.
        targets: Names of the target columns.
        options: The plan's ``task``.

    Raises:
        PlanError: A target does not fit the task.
    """
    task = options.task if options.task in ("classification", "multi-label", "regression") else ""
    if len(targets) > 1 and task in ("", "multi-label") and all(is_flag(columns[name]) for name in targets):
        return TargetColumnForm("multi-label", dict.fromkeys(targets, ()))
    if task == "multi-label":
        raise PlanError("task", task, "needs several target columns with the values 0 and 1")
    classes = {name: _class_names(columns[name], task) for name in targets}
    if all(classes.values()):
        return TargetColumnForm("classification" if len(targets) == 1 else "auto", classes)
    return TargetColumnForm("auto" if any(classes.values()) else "regression", classes)


def target_arrays(
    columns: Mapping[str, TableColumn], form: TargetColumnForm, rows: int
) -> tuple[Structure, npt.NDArray[np.bool_]]:
    """Convert targets.

    Args:
        columns: The target columns by name.
        form: How they are converted.
        rows: Number of rows.

    Returns:
        Class indices, int32 ``[n]``, for one target with classes; numbers as float64 ``[n, k]`` for k targets with
        numbers; labels of 0 and 1 as float32 ``[n, k]``; a dictionary of class indices and numbers as float64 by column
        for targets of both kinds, or of several classes; ``None`` without targets. And which rows have all targets,
        bool ``[n]``; others hold arbitrary values.
    """
    valid = np.ones(rows, bool)
    if not form.classes:
        return None, valid
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, classes in form.classes.items():
        single = form.task == "multi-label"
        arrays[name], known = _indices(columns[name], classes) if classes else _numbers(columns[name], single=single)
        valid &= known
    if form.task == "auto":
        return {name: values if form.classes[name] else values[:, None] for name, values in arrays.items()}, valid
    if form.task == "classification":
        return next(iter(arrays.values())), valid
    return np.stack(list(arrays.values()), axis=1), valid


def target_scaling(targets: Structure, train: npt.NDArray[np.integer[Any]]) -> Standardization | None:
    """How numbers to predict are standardised; ``None`` if float32 keeps their digits, or for other targets.

    Args:
        targets: The targets of all rows, as in :func:`target_arrays`.
        train: The training rows.
    """
    if not isinstance(targets, np.ndarray) or targets.dtype != np.float64 or not len(train):
        return None
    return number_scaling(targets, train)


def _class_names(column: TableColumn, task: str) -> tuple[str, ...]:
    """The classes of a column; empty if it has numbers."""
    if column.kind in ("category", "boolean"):
        if task == "regression":
            raise PlanError("task", task, f"the target {column.name} has texts such as {column.categories[0]!r}")
        names = column.categories
        return tuple(sorted(names, key=float)) if all(map(_is_whole, names)) else names
    if column.kind in ("text", "key") and column.values.dtype == object:
        names = tuple(sorted({text for text in column.values if text is not None}))
        if len(names) > MAX_CLASSES or 2 * len(names) > len(column.values):
            found = f"has {len(names):,} different texts in {len(column.values):,} rows"
            raise PlanError(
                "target", column.name, f"{found}, too many for classes: choose a column of classes or numbers"
            )
        return names
    values = np.unique(column.values[np.isfinite(column.values)])
    few = MAX_CLASSES if column.name.lower() in CLASS_NAMES else FEW_CLASSES
    looks_like_classes = (
        column.integers and 2 <= len(values) <= few and len(column.values) >= ROWS_PER_CLASS * len(values)
    )
    if task == "regression" or column.kind == "date" or not (looks_like_classes or task):
        return ()
    if not column.integers or len(values) > MAX_CLASSES:
        raise PlanError("task", task, f"the target {column.name} has {len(values):,} different numbers; use regression")
    return tuple(str(int(value)) for value in values)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def is_flag(column: TableColumn) -> bool:
    """Whether a column has only the numbers 0 and 1, or two texts for them."""
    if column.kind == "boolean":
        return True
    return column.kind == "number" and bool(np.isin(column.values[~np.isnan(column.values)], (0, 1)).all())


def _indices(column: TableColumn, classes: tuple[str, ...]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Index of each value in the classes, and whether it is one of them."""
    places = {name: index for index, name in enumerate(classes)}
    values = column.values.tolist()
    if column.values.dtype != object:
        values = [str(int(value)) if np.isfinite(value) and value == int(value) else None for value in values]
    indices = np.fromiter((places.get(value, -1) for value in values), np.int32, len(column.values))
    return np.maximum(indices, 0), indices >= 0


def _numbers(column: TableColumn, *, single: bool) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The numbers as float64, or as float32, and which of them are finite so."""
    values = column.values
    if values.dtype == object:
        values = column.truths
    finite = np.abs(values) <= np.finfo(np.float32).max  # what the outputs of a model can be
    return np.where(finite, values, 0).astype(np.float32 if single else np.float64), finite
