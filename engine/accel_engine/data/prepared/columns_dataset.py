"""Makes a dataset of the columns of prepared examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, LazyArray, Split, fits_in_memory
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.prepared.roles import Roles, kind_and_range, task_of
from accel_engine.data.prepared.rows import ColumnSource, SourceColumns, decode_columns, row_bytes
from accel_engine.data.splits import split_rows
from accel_engine.data.structure import map_structure
from accel_engine.data.targets import TargetForm, named_classes
from accel_engine.errors import DataError

_SMALL = 1024
"""Bytes of an example up to which a target is held in memory although the inputs do not fit there."""

_NAMED = 3
"""Number of skipped examples that are named."""


@dataclass(frozen=True, slots=True)
class PreparedSplits:
    """The examples of prepared splits.

    Attributes:
        train: The training examples.
        validation: The validation examples; ``None`` if there are none.
        test: The test examples; ``None`` if there are none.
    """

    train: ColumnSource
    validation: ColumnSource | None = None
    test: ColumnSource | None = None


def build_dataset(
    entry: DatasetEntry,
    splits: PreparedSplits,
    roles: Roles,
    options: DataOptions,
    progress: Progress,
    *,
    class_names: Sequence[str] = (),
    images: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Dataset:
    """Read the columns into memory if they fit, or make lazy arrays of them.

    Args:
        entry: The dataset's entry.
        splits: The examples; a validation split is taken from the training examples if there is none.
        roles: Which columns are what.
        options: How examples are split, and whether invalid ones are skipped.
        progress: Reports the number of examples read.
        class_names: Names of the classes, where the data has them.
        images: Names of the columns that are images.
        notes: Notes for the user.

    Raises:
        DataError: An example cannot be read.
    """
    specs = splits.train.specs
    task = task_of(roles, specs, options, class_names)
    classify = task == "classification" and len(roles.targets) == 1
    said = list(notes)
    sources = [source for source in (splits.train, splits.validation, splits.test) if source is not None]
    size = row_bytes(specs[name] for name in roles.names)
    reader = _Reader(roles, options, progress, fits_in_memory(size * sum(map(len, sources))), said)
    train = reader.read(splits.train)
    parts: list[Split | None] = [
        reader.read(source) if source is not None else None for source in (splits.validation, splits.test)
    ]
    shares = replace(
        options,
        validation_split=0.0 if parts[0] else options.validation_split,
        test_split=0.0 if parts[1] else options.test_split,
    )
    names = tuple(class_names)
    if classify and isinstance(train.targets, np.ndarray) and train.targets.dtype.kind in "OUS":
        form = named_classes(train.targets, names, roles.targets[0])
        names = form.names
        train = _with_numbers(train, form, roles.targets[0])
        parts = [part and _with_numbers(part, form, roles.targets[0]) for part in parts]
    if not (parts[0] and parts[1]):
        labels = train.targets if classify and isinstance(train.targets, np.ndarray) else None
        rows = split_rows(len(train), shares, labels)
        if parts[0] is None and options.split != "none":
            said.append(f"validation split: {len(rows.validation)} of {len(train)} examples")
        if len(rows.test):
            said.append(f"test split: {len(rows.test)} of {len(train)} examples")
        parts = [part or _select(train, own) for part, own in zip(parts, rows[1:], strict=True)]
        train = _select(train, rows.train) or train
    if classify:
        names = names or _class_names([train, *parts])
        train = _with_classes(train, len(names))
        parts = [part and _with_classes(part, len(names)) for part in parts]
    kind, values = kind_and_range(roles, specs, images)
    return Dataset(
        entry.name,
        train,
        parts[0],
        parts[1],
        class_names=names,
        task=task,
        kind=kind,
        target_names=roles.targets,
        value_range=values,
        notes=tuple(said),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the examples of a source."""

    roles: Roles
    options: DataOptions
    progress: Progress
    in_memory: bool
    notes: list[str]

    def read(self, source: ColumnSource) -> Split:
        """The examples that are valid, in memory or lazy."""
        skip = self.options.invalid_examples == "skip"
        names = self.roles.names
        eager = [name for name in names if self.in_memory or self._is_small_target(source, name)]
        values, valid = decode_columns(source, eager, self.progress, skip=skip) if eager else ({}, None)
        if skip and len(eager) < len(names):
            _, valid = decode_columns(source, names, self.progress, skip=True, store=False)
        rows = np.arange(len(source)) if valid is None else np.flatnonzero(valid)
        if len(rows) < len(source):
            self._note_invalid(source, np.setdiff1d(np.arange(len(source)), rows))
            values = {name: array[rows] for name, array in values.items()}
        lazy = SourceColumns(source, [name for name in names if name not in values], rows)
        columns: dict[str, Any] = {name: values[name] if name in values else lazy.array(name) for name in names}
        return Split(*self.roles.batch(columns))

    def _is_small_target(self, source: ColumnSource, name: str) -> bool:
        target = name in self.roles.targets or name == self.roles.weight
        return target and name not in self.roles.inputs and row_bytes([source.specs[name]]) <= _SMALL

    def _note_invalid(self, source: ColumnSource, rows: npt.NDArray[np.intp]) -> None:
        if len(rows) == len(source):
            raise DataError(f"not one of {len(source)} examples can be read: {source.problem(0)}")
        problems = "; ".join(str(source.problem(int(row))) for row in rows[:_NAMED])
        self.notes.append(f"skipped {len(rows)} of {len(source)} examples that cannot be read: {problems}")


def _select(split: Split, rows: npt.NDArray[np.intp]) -> Split | None:
    """The examples at ``rows``; ``None`` if there are none."""
    if not len(rows):
        return None

    def select(array: npt.NDArray[Any] | LazyArray) -> Any:
        return array[rows] if isinstance(array, np.ndarray) else _LazyRows(array, rows)

    return Split(*map_structure(select, split.batch))


class _LazyRows:
    """Some rows of a lazy array."""

    def __init__(self, array: LazyArray, rows: npt.NDArray[np.intp]) -> None:
        self.shape = (len(rows), *array.shape[1:])
        self.dtype = array.dtype
        self.nbytes = array.nbytes // max(1, len(array)) * len(rows)
        self._array = array
        self._rows = rows

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Read some rows."""
        return self._array.take(self._rows[rows])

    def __len__(self) -> int:
        return self.shape[0]


def _with_numbers(split: Split, form: TargetForm, name: str) -> Split:
    """The split with class indices for the names of classes."""
    return Split(split.inputs, form.convert(split.targets, name), split.weights)


def _class_names(splits: Sequence[Split | None]) -> tuple[str, ...]:
    """The numbers of the classes, from 0 to the largest."""
    largest = max(int(np.max(split.targets)) for split in splits if split is not None)
    return tuple(map(str, range(largest + 1)))


def _with_classes(split: Split, classes: int) -> Split:
    """The split with its labels as int32.

    Raises:
        DataError: A label is not one of the classes.
    """
    if not isinstance(split.targets, np.ndarray):
        return split
    labels = split.targets
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"example {row} has the label {labels[row]}; labels must be from 0 to {classes - 1}")
    return Split(split.inputs, labels.astype(np.int32), split.weights)
