"""The description of data, in types that can be sent and stored."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.dataset import Dataset, Examples, Split
from accel_engine.data.source import DatasetEntry, EntryColumn
from accel_engine.data.structure import Batch, Structure, named_leaves
from accel_engine.data_profile.picture import DataPicture, data_picture

SAMPLES = 3
"""Number of examples that are described."""

_ROWS = 10_000
_BYTES = 1 << 28
"""The most examples, and the most bytes, whose values are looked at for their range."""

_LAZY_ROWS = 64
"""The same for examples that are read one by one."""

_VALUES = 6
"""Number of values shown of an array."""

_OF_ALL = (
    *("shape", "spec", "examples", "validation_examples", "test_examples"),
    *("task", "classes", "class_names", "class_counts"),
)
"""What only all of the examples tell of some data."""

_ROLES = {"inputs": "input", "targets": "target", "weights": "weight"}


@dataclass(frozen=True, slots=True)
class DescribedData:
    """The description of data, in types that can be sent and stored."""

    entry: DatasetEntry
    """The data, without the specification of its arrays."""
    inputs: Mapping[str, str]
    """A line about each array of the inputs, by name."""
    targets: Mapping[str, str]
    """The same for the targets."""
    weights: Mapping[str, str]
    """The same for the weights."""
    picture: DataPicture | None = None
    """What some examples are like; ``None`` for data that was not read, and for a stream."""

    @classmethod
    def of(cls, entry: DatasetEntry, picture: DataPicture | None = None) -> Self:
        """Describe data by its entry, and by what was seen of it."""
        inputs, targets, weights = (dict(_specs(part)) for part in entry.spec or Batch(None))
        return cls(replace(entry, spec=None), inputs, targets, weights, picture)

    def to_json(self) -> dict[str, Any]:
        """All of it in types of JSON, without where its code is."""
        values = asdict(replace(self.entry, path=None, value_range=None))
        return {
            **{name: value for name, value in values.items() if name not in ("reader", "spec", "path", "value_range")},
            "path": str(self.entry.path) if self.entry.path else None,
            "inputs_spec": self.inputs,
            "targets_spec": self.targets,
            "weights_spec": self.weights,
            "picture": self.picture.to_json() if self.picture else None,
        }


def _specs(structure: Structure) -> Iterator[tuple[str, str]]:
    return ((name, str(spec)) for name, spec in named_leaves(structure))


def describe_loaded(
    spec: str, options: DataOptions, entry: DatasetEntry | None = None, progress: Progress = no_progress
) -> DescribedData:
    """Read data, and describe it.

    Args:
        spec: A plan's ``data``.
        options: How it is read and split.
        entry: What is known of it already; by default what its headers tell or, where only the engine can look at it,
            what reading tells.
        progress: Reports the number of examples read.

    Raises:
        DataError: The data cannot be read.
        PlanError: An option does not fit it.
    """
    found = find(spec)
    if entry is None and not found.needs_engine:
        entry = survey(found, options)
    dataset = load(spec, options, progress)
    if entry is None:
        entry = entry_of(dataset, found)
    elif entry.examples is None or entry.classes is None:  # such as compressed records, and large tables
        loaded = entry_of(dataset, found)
        entry = replace(entry, **{name: getattr(loaded, name) for name in _OF_ALL})
    if not entry.class_counts and (labels := _labels(dataset)) is not None:  # such as built-in data
        counted = np.bincount(labels, minlength=dataset.classes).tolist()
        entry = replace(entry, class_counts=tuple(counted), class_names=entry.class_names or dataset.class_names)
    return DescribedData.of(entry, data_picture(dataset, options.task))


def entry_of(dataset: Dataset, entry: DatasetEntry) -> DatasetEntry:
    """Complete an entry with what its loaded dataset tells.

    Args:
        dataset: The dataset.
        entry: Names it.
    """
    head = _head(dataset.train)
    labels = _labels(dataset)
    return replace(
        entry,
        shape=_shape(dataset),
        classes=dataset.classes,
        examples=_count(dataset.train),
        validation_examples=_count(dataset.validation),
        test_examples=_count(dataset.test),
        value_range=dataset.value_range,
        notes=(*dataset.notes, *dataset.warnings),
        kind=dataset.kind,
        sample_rate=dataset.sample_rate,
        task=dataset.task,
        spec=dataset.spec,
        columns=tuple(_columns(dataset.spec, head)),
        class_names=dataset.class_names,
        class_counts=() if labels is None else tuple(np.bincount(labels, minlength=dataset.classes).tolist()),
        samples=tuple(_samples(head)),
    )


def _shape(dataset: Dataset) -> tuple[int, ...] | None:
    shape = dataset.shape
    return None if shape is None or None in shape else tuple(side for side in shape if side is not None)


def _count(examples: Examples | None) -> int | None:
    """The number of examples; 0 for no split, ``None`` for a stream whose length is unknown."""
    if examples is None:
        return 0
    if isinstance(examples, Split):
        return len(examples)
    batches, size = examples.batches, examples.batch_size
    return None if batches is None or size is None else batches * size


def _head(examples: Examples) -> Batch:
    """The first examples: as many as are needed for a range of values, or the first batch of a stream."""
    if not isinstance(examples, Split):
        return next(iter(examples.read(0, 0)), Batch(None))
    each = max(examples.nbytes // max(len(examples), 1), 1)
    rows = min(_ROWS, _BYTES // each) if examples.in_memory else _LAZY_ROWS
    return examples.take(np.arange(min(len(examples), max(rows, SAMPLES))))


def _labels(dataset: Dataset) -> npt.NDArray[Any] | None:
    """The class of each training example, where each has one and all are at hand."""
    targets = dataset.train.targets if isinstance(dataset.train, Split) else None
    is_labels = isinstance(targets, np.ndarray) and targets.ndim == 1 and targets.dtype.kind in "iu"
    return targets if is_labels and dataset.classes else None


def _columns(spec: Batch, head: Batch) -> Iterator[EntryColumn]:
    for part, role in _ROLES.items():
        arrays = dict(named_leaves(getattr(head, part)))
        for name, each in named_leaves(getattr(spec, part)):
            yield EntryColumn(name or part, str(each), role, *_values(np.asarray(arrays.get(name, ()))))


def _values(array: npt.NDArray[Any]) -> tuple[int | None, str]:
    """The number of values that are NaN, and the range of the others."""
    if array.dtype.kind not in "fiub" or not array.size:
        return None, ""
    array = array.astype(np.float64)
    finite = array[np.isfinite(array)]
    text = f"{finite.min():g} to {finite.max():g}" if finite.size else ""
    return int(np.isnan(array).sum()), text


def _samples(head: Batch) -> Iterator[tuple[str, str]]:
    leaves = [(name or part, array) for part in _ROLES for name, array in named_leaves(getattr(head, part))]
    for row in range(min(SAMPLES, *(len(array) for _, array in leaves)) if leaves else 0):
        yield str(row), ", ".join(f"{name} {_text(np.asarray(array[row]))}" for name, array in leaves)


def _text(values: npt.NDArray[Any]) -> str:
    """An array's first values: ``5.1``, ``[5.1 3.5 1.4 ...]``."""
    flat = values.ravel()
    shown = " ".join(_value(value) for value in islice(flat.tolist(), _VALUES))
    return shown if not values.ndim else f"[{shown}{' …' if flat.size > _VALUES else ''}]"


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return repr(value) if isinstance(value, str) else str(value)
