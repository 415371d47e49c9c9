"""Weights examples by their class, as ``class_weight`` of Keras' ``fit`` does, and warns of classes without any.

Without TensorFlow.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Examples, Split, Stream, take_rows
from accel_engine.data.source import DatasetEntry
from accel_engine.data.structure import ArraySpec, Batch, map_structure
from accel_engine.errors import PlanError
from accel_engine.text import suggestion
from accel_engine.words import numbers

BALANCED = "balanced"
"""A class weighs ``n / (classes * count)``, with ``n`` examples in all, and ``count`` of the class."""

_TASKS = ("auto", "classification", "custom")
"""Tasks whose targets may be one class for each example."""

_LISTED = 8
"""Number of classes whose weights are named in a note."""

_ROWS = 1024
"""Rows that are read at a time of targets that are not in memory."""


def check_class_weights(entry: DatasetEntry, options: DataOptions) -> None:
    """Check a plan's class weights against what is known of the data before it is read.

    Raises:
        PlanError: The weights have another format, or do not fit the data.
    """
    given = _parse(options.class_weight)
    _check_task(entry.task, options)
    if given is not None and entry.class_names and entry.classes is not None:
        _by_index(given, entry.class_names, options)


def weighted(dataset: Dataset, options: DataOptions) -> Dataset:
    """Multiply the sample weights of the training examples by the weights of their classes.

    A class that is not named weighs 1. Validation and test examples keep their weights, as in ``fit``.

    Args:
        dataset: The data.
        options: The plan's class weights.

    Raises:
        PlanError: The weights do not fit the data, or ``balanced`` is given for a stream, which cannot be counted.
    """
    _check_task(dataset.task, options)
    targets = dataset.spec.targets
    if not _is_class(targets, dataset):
        found = (
            "no targets" if targets is None else "several targets" if not isinstance(targets, ArraySpec) else targets
        )
        raise PlanError("class_weight", options.class_weight, f"needs one class for each example; the data has {found}")
    given, train = _parse(options.class_weight), dataset.train
    labels = _labels(train) if isinstance(train, Split) else None
    if given is None:
        if labels is None:
            reason = (
                "the classes of a stream are not counted before training: give a weight for each, as in cat=1,dog=5"
            )
            raise PlanError("class_weight", BALANCED, reason)
        by_index = _balanced(labels)
    else:
        by_index = _by_index(given, dataset.class_names, options)
    table = np.ones(max(by_index) + 1, np.float32)
    table[list(by_index)] = list(by_index.values())
    weighted_train: Examples
    if isinstance(train, Split):
        assert labels is not None  # noqa: S101 (they were just read)
        weighted_train = replace(train, weights=_multiplied(train.weights, _look_up(table, labels)))
    else:
        weighted_train = WeightedStream(train, table)
    note = f"class weights of training examples: {_listed(by_index, dataset.class_names)}"
    return replace(dataset, train=weighted_train, notes=(*dataset.notes, note))


@dataclass(frozen=True, slots=True, eq=False)
class WeightedStream:
    """A stream whose examples weigh as much as their classes."""

    stream: Stream
    """The examples."""
    table: npt.NDArray[np.float32]
    """The weight of each class, float32 ``[classes]``."""

    @property
    def spec(self) -> Batch:
        """The :class:`ArraySpec` of every array, without the batch."""
        spec = self.stream.spec
        weights = map_structure(lambda each: replace(each, dtype="float32"), spec.weights)
        return spec._replace(weights=ArraySpec((), "float32") if weights is None else weights)

    @property
    def batches(self) -> int | None:
        """Batches of an epoch; ``None`` if unknown, or if the stream never ends."""
        return self.stream.batches

    @property
    def batch_size(self) -> int | None:
        """Examples of a batch but the last; ``None`` if unknown."""
        return self.stream.batch_size

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        """Yield an epoch's batches of arrays, from a position on."""
        for batch in self.stream.read(epoch, position):
            own = _look_up(self.table, _indices(np.asarray(batch.targets)))
            yield batch._replace(weights=_multiplied(batch.weights, own))


def unlearned_classes(dataset: Dataset, options: DataOptions) -> tuple[str, ...]:
    """A warning on classes that only validation or test examples have; none for streams and labels on the disk."""
    parts = [part for part in (dataset.train, dataset.validation, dataset.test) if part is not None]
    task = dataset.task if options.task == "auto" else options.task
    if task != "classification" or not _is_class(dataset.spec.targets, dataset):
        return ()
    labels = [part.targets for part in parts if isinstance(part, Split) and isinstance(part.targets, np.ndarray)]
    return unlearned_warning(dataset.class_names, *map(_indices, labels)) if len(labels) == len(parts) else ()


def unlearned_warning(
    names: tuple[str, ...], train: npt.NDArray[np.integer[Any]], *others: npt.NDArray[np.integer[Any]]
) -> tuple[str, ...]:
    """A warning on the classes of some examples that no training example has; nothing if there are none.

    Args:
        names: The names of the classes; empty for their indices.
        train: The classes of training examples.
        others: Those of validation and test examples.
    """
    found = {int(label) for other in others for label in np.unique(other[~np.isin(other, train)])}
    absent = sorted(label for label in found if 0 <= label < (len(names) or math.inf))
    if not absent:
        return ()
    listed = numbers.listed((str(names[index] if names else index) for index in absent), _LISTED)
    word, has, it = ("class", "has", "it") if len(absent) == 1 else ("classes", "have", "they")
    return (f"{word} {listed} {has} no training examples, only others: {it} cannot be learned",)


def _parse(values: tuple[str, ...]) -> dict[str, float] | None:
    """The weights by the name or index of their class; ``None`` for ``balanced``."""
    if values == (BALANCED,):
        return None
    weights: dict[str, float] = {}
    for value in values:
        name, equals, text = value.rpartition("=")
        if not equals or not name:
            raise PlanError("class_weight", value, f"must be {BALANCED} or CLASS=WEIGHT, e.g. {name or value or 0}=2")
        if name in weights:
            raise PlanError("class_weight", values, f"has two weights for class {name}")
        try:
            weights[name] = float(text)
        except ValueError:
            weights[name] = math.nan
        if not 0 <= weights[name] < math.inf:
            raise PlanError("class_weight", value, "the weight must be a number of at least 0")
    return weights


def _check_task(suggested: str, options: DataOptions) -> None:
    task = suggested if options.task == "auto" else options.task
    if task not in _TASKS:
        raise PlanError("class_weight", options.class_weight, f"needs one class for each example; the task is {task}")


def _is_class(targets: Any, dataset: Dataset) -> bool:
    """Whether a target is one class: an index, or a one-hot vector."""
    if not isinstance(targets, ArraySpec) or targets.dtype == "string":
        return False
    if targets.shape in ((), (1,)):
        return "int" in targets.dtype or targets.dtype == "bool" or bool(dataset.class_names)
    return bool(dataset.class_names) and targets.shape == (len(dataset.class_names),)


def _by_index(given: Mapping[str, float], names: tuple[str, ...], options: DataOptions) -> dict[int, float]:
    """The weights by class index; without class names, all are indices."""
    weights: dict[int, float] = {}
    numbered = any(name.isdecimal() for name in names)  # then a number is a name, never an index
    for name, weight in given.items():
        if name in names:
            index = names.index(name)
        elif name.isdecimal() and not numbered and (not names or int(name) < len(names)):
            index = int(name)
        else:
            hint = suggestion(name, names) if names else "the data has no names of classes: use their indices, from 0"
            hint += "; numbers are names here, not indices" if numbered and name.isdecimal() else ""
            raise PlanError("class_weight", options.class_weight, f"no class {name!r}; {hint}")
        if index in weights:
            reason = f"has two weights for class {names[index] if names else index}, by its name and its index"
            raise PlanError("class_weight", options.class_weight, reason)
        weights[index] = weight
    return weights


def _balanced(labels: npt.NDArray[np.int64]) -> dict[int, float]:
    """The weights that make the classes that occur weigh the same in sum."""
    classes, counts = np.unique(labels, return_counts=True)
    return dict(zip(classes.tolist(), (len(labels) / (len(classes) * counts)).tolist(), strict=True))


def _labels(split: Split) -> npt.NDArray[np.int64]:
    """The class of every example."""
    chunks = (np.arange(first, min(first + _ROWS, len(split))) for first in range(0, len(split), _ROWS))
    return np.concatenate([_indices(take_rows(split.targets, rows)) for rows in chunks])


def _indices(targets: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Class indices ``[n]`` of targets ``[n]``, ``[n, 1]`` or one-hot, as Keras takes them."""
    if targets.ndim == 2:
        targets = targets[:, 0] if targets.shape[1] == 1 else targets.argmax(axis=1)
    return np.round(targets.astype(np.float64)).astype(np.int64)


def _look_up(table: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    inside = (labels >= 0) & (labels < len(table))
    return np.where(inside, table[np.where(inside, labels, 0)], np.float32(1))


def _multiplied(weights: Any, own: npt.NDArray[np.float32]) -> Any:
    """Sample weights times the weights of the classes ``[n]``."""
    if weights is None:
        return own

    def multiply(each: Any) -> npt.NDArray[np.float32]:
        array = np.asarray(each, np.float32)
        return array * own.reshape(-1, *[1] * (array.ndim - 1))

    return map_structure(multiply, weights)


def _listed(by_index: Mapping[int, float], names: tuple[str, ...]) -> str:
    shown = (f"{names[index] if names else index} {weight:.3g}" for index, weight in sorted(by_index.items()))
    return numbers.listed(shown, _LISTED)
