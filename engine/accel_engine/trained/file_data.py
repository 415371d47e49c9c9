"""Data in the form in which the model of a file takes it: raw columns of a table, and its own order of classes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from accel_engine import data
from accel_engine.data.data_options import ColumnFormat, DataOptions, Progress, without_skip
from accel_engine.data.dataset import Dataset, Examples, LazyArray, LazyRows, Split, take_rows
from accel_engine.data.roles import WEIGHT_NAMES
from accel_engine.data.standardization import Standardization, WindowNormalization
from accel_engine.data.standardization_model import dtype_of_units, units_of_model
from accel_engine.data.structure import flatten, map_structure, named_leaves
from accel_engine.data.tables.category_values import truth_words
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.preprocessing import unseen_notes
from accel_engine.data.tables.raw_inputs import (
    JOINED_CATEGORIES,
    NUMBERS,
    arrays_of,
    check_numbers,
    formats_for,
    input_key,
)
from accel_engine.data.tables.table_file import read_cells
from accel_engine.data.tables.targets import is_flag
from accel_engine.errors import DataError
from accel_engine.keras_support.model_structure import model_input
from accel_engine.models.exported_model import categories, class_names, input_name, raw_columns
from accel_engine.plan import Plan

_SPLITS = {"train": "training", "validation": "validation", "test": "test"}
"""The names of the raw inputs of a dataset's splits."""


def load_for(model: keras.Model, plan: Plan, progress: Progress) -> Dataset:
    """Load a plan's data for the model of a file.

    Args:
        model: The model.
        plan: The data. Of a table, the target is the last column that the model does not take, unless it is given.
        progress: Reports the number of examples read.

    Raises:
        AccelError: The data cannot be read, or has classes that the model does not know.
    """
    try:
        dataset = _loaded_for(model, plan, progress)
    except DataError as error:
        raise without_skip(error) from error
    dataset, known = _in_units(dataset, units_of_model(model)), class_names(model)
    return _with_classes(dataset, known) if known and dataset.class_names not in ((), known) else dataset


def _loaded_for(model: keras.Model, plan: Plan, progress: Progress) -> Dataset:
    """A plan's data with the inputs that the model of a file takes."""
    columns = raw_columns(model)
    entry = data.find(plan.data)
    if columns and entry.path is not None and data.source_of(entry).is_table:
        return _with_columns(entry.path, model, columns, plan, progress)
    options = replace(plan.data_options, takes_texts=_takes_texts(model))
    return _with_named_inputs(data.load(plan.data, options, progress), model_input(model))


def _takes_texts(model: keras.Model) -> bool:
    """Whether a model takes a text for each example."""
    given = keras.tree.flatten(model_input(model))
    return len(given) == 1 and getattr(given[0], "dtype", "") == "string"


def _with_columns(path: Path, model: keras.Model, columns: dict[str, str], plan: Plan, progress: Progress) -> Dataset:
    """A table with the raw columns that a model takes as inputs."""
    header = read_cells(path, skip_invalid=True, limit=1).table.column_names
    known = {*columns, *categories(model)} - {NUMBERS, JOINED_CATEGORIES}
    free = [name for name in header if input_key(name) not in known and name not in WEIGHT_NAMES]
    others = [] if NUMBERS in columns else free
    if len(others) > 1:  # a date is taken in parts, such as time_hour
        others = [name for name in others if not any(key.startswith(f"{input_key(name)}_") for key in known)]
    notes = list[str]()
    if not plan.target and others:
        plan = plan.replace(target=(others[-1],))
        if len(others) > 1:
            notes.append(f"the model takes no column {' or '.join(others)}: the last of them is taken as its target")
    taken = {input_key(name): name for name in header}
    if known <= taken.keys() and NUMBERS not in columns:  # without parts of dates; named, all are kept
        plan = plan.replace(features=tuple(name for key, name in taken.items() if key in known))
    dataset = data.load(plan.data, _options(path, model, columns, plan), progress)
    every = dataset.raw_inputs["training"].inputs
    if missing := sorted(known - {raw.key for raw in every}):
        raise DataError(f"{plan.data} has no column {', '.join(missing)}, which the model takes")
    check_numbers(plan.data, every, _numbers(model))
    matrices = {part: dataset.raw_inputs[name] for part, name in _SPLITS.items() if getattr(dataset, part)}
    warnings = (*notes, *unseen_notes(categories(model), every, np.arange(len(every[0].values)), path))
    parts: dict[str, Any] = {
        part: replace(getattr(dataset, part), inputs=arrays_of(matrix.inputs, columns, matrix.rows))
        for part, matrix in matrices.items()
    }
    return replace(dataset, preprocess=None, raw_inputs={}, feature_names=(), warnings=warnings, **parts)


def _options(path: Path, model: keras.Model, columns: dict[str, str], plan: Plan) -> DataOptions:
    """Options that read columns, and the target, as the same values as in training, as far as the model tells."""
    found = read_columns(path, plan.data_options).columns
    formats = [*formats_for(found, columns, categories(model)).values()]
    if words := truth_words(class_names(model)):
        flags = [name for name, column in found.items() if name not in columns and is_flag(column)]
        formats += [ColumnFormat(name, "boolean", truth_words=words) for name in flags]
    return replace(plan.data_options, keeps_raw=True, formats=tuple(formats))


@dataclass(frozen=True, slots=True, eq=False)
class _Restored(LazyRows):
    """An array in its units; see :class:`accel_engine.data.dataset.LazyArray`."""

    standardized: npt.NDArray[Any] | LazyArray
    scaling: Standardization
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.standardized.shape

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        return self.scaling.restore(take_rows(self.standardized, rows)).astype(self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Rescaled(LazyRows):
    """Targets in the standard deviations of a file's model; see :class:`accel_engine.data.dataset.LazyArray`."""

    given: npt.NDArray[Any] | LazyArray
    scaling: Standardization | None
    units: Standardization

    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.given.shape

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        values = take_rows(self.given, rows)
        return self.units.apply(self.scaling.restore(values) if self.scaling else values)


def _in_units(dataset: Dataset, units: Standardization | None) -> Dataset:
    """Data whose windows and targets are as they were given: a file's model takes and gives them so.

    Targets whose digits float32 would lose are in the standard deviations of the model.

    Args:
        dataset: The data.
        units: How the model gives its output units; ``None`` if it does not.
    """
    windows, targets = dataset.preprocess, dataset.target_scaling
    raw = windows if isinstance(windows, WindowNormalization) else None
    is_precise = units is not None and dtype_of_units(units) == "float64" and dataset.task in ("auto", "regression")
    if not isinstance(dataset.train, Split) or (raw is None and targets is None and not is_precise):
        return dataset

    def restored(split: Split) -> Split:
        inputs, wanted = split.inputs, split.targets
        if raw is not None:
            inputs = _Restored(inputs, raw.scaling, np.dtype(raw.dtype))
        if is_precise and units is not None:
            wanted = map_structure(lambda array: _Rescaled(array, targets, units), wanted)
        elif targets is not None:
            wanted = map_structure(lambda array: _Restored(array, targets, np.dtype(np.float32)), wanted)
        return replace(split, inputs=inputs, targets=wanted)

    parts: dict[str, Any] = {
        part: restored(split) for part in _SPLITS if isinstance(split := getattr(dataset, part), Split)
    }
    scaling = units if is_precise else None
    warnings = (*dataset.warnings, *_rounded_note(None if is_precise else targets))
    return replace(dataset, preprocess=None if raw else windows, target_scaling=scaling, warnings=warnings, **parts)


def _rounded_note(targets: Standardization | None) -> tuple[str, ...]:
    """A warning on targets in units of which float32, in which Keras computes losses and metrics, loses digits."""
    if targets is None or dtype_of_units(targets) == "float32":
        return ()
    step = float(np.spacing(np.abs(targets.mean).max().astype(np.float32)))
    return (
        f"float32, in which losses and metrics are computed, has targets like these in steps of {step:g}: smaller "
        "errors are not seen; evaluate the run that trained the model instead",
    )


def _with_named_inputs(dataset: Dataset, given: Any) -> Dataset:
    """Data with several inputs in the dictionary that an exported model takes."""
    names = [input_name(path) for path, _ in named_leaves(dataset.spec.inputs)]
    if not isinstance(given, dict) or len(names) < 2 or set(names) != set(given):
        return dataset
    parts: dict[str, Any] = {
        part: replace(split, inputs=dict(zip(names, flatten(split.inputs), strict=True)))
        for part in _SPLITS
        if isinstance(split := getattr(dataset, part), Split)
    }
    return replace(dataset, **parts)


def _numbers(model: keras.Model) -> int:
    """How many numbers a model takes as one matrix."""
    tensors = keras.tree.flatten(model_input(model))
    return next((int(each.shape[-1]) for each in tensors if each.name == NUMBERS), 0)


def _with_classes(dataset: Dataset, known: tuple[str, ...]) -> Dataset:
    """The data with the classes of a model, in its order.

    Raises:
        DataError: The data has others.
    """
    if unknown := [name for name in dataset.class_names if name not in known]:
        raise DataError(f"{dataset.name} has the class {unknown[0]}, which the model does not know: {', '.join(known)}")
    places = np.array([known.index(name) for name in dataset.class_names])

    def renamed(examples: Examples | None) -> Examples | None:
        if not isinstance(examples, Split):
            return examples
        return replace(examples, targets=places[examples.targets].astype(examples.targets.dtype))

    parts: dict[str, Any] = {part: renamed(getattr(dataset, part)) for part in _SPLITS}
    return replace(dataset, class_names=known, **parts)
