"""Describes a loaded dataset: shapes, ranges, classes, splits and a few examples."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Examples, Split
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.structure import Batch, named_leaves

SAMPLES = 3
"""Number of examples that are described."""

_ROWS = 10_000
_BYTES = 1 << 28
"""The values of at most so many examples, and of so many bytes, are looked at for their range."""

_LAZY_ROWS = 64
"""The same for examples that are read one by one."""

_VALUES = 6
"""Number of values shown of an array."""

_ROLES = {"inputs": "input", "targets": "target", "weights": "weight"}


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
