"""A dataset for training: its splits, and what is known about them."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import ArraySpec, Batch, Structure, flatten, map_structure
from accel_engine.memory import available_memory

MEMORY_SHARE = 0.25
"""Share of the free memory up to which examples are loaded into memory; otherwise they are read lazily."""

LARGEST_MADE = 1 << 28
"""Bytes up to which all examples are made at once, so that devices can keep them. Windows take more memory than
the data that they are made of."""


_CHECKED = 1 << 24
"""Values that are checked at a time, so that checking large data takes little memory."""


class LazyArray(Protocol):
    """An array whose rows are read or generated when they are needed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(examples, ...)``."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of :meth:`take`'s arrays."""

    @property
    def nbytes(self) -> int:
        """Bytes of all rows in memory."""

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Read some rows, ``[len(rows), ...]``."""

    def __len__(self) -> int: ...


class LazyRows:
    """The methods of a :class:`LazyArray` that follow from its shape and type."""

    __slots__ = ()

    @property
    def nbytes(self: LazyArray) -> int:
        """Bytes of all rows in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self: LazyArray) -> int:
        return self.shape[0]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Examples that can be read by row, in any order."""

    inputs: Structure
    """A structure of arrays, or lazy arrays, ``[examples, ...]``."""
    targets: Structure = None
    """The same; ``None`` if there are no targets."""
    weights: Structure = None
    """Sample weights; ``None`` if all examples weigh the same."""
    file_of: npt.NDArray[np.intp] | None = None
    """The number of the file that each example is a window of, in order; ``None`` if files are not divided."""

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def batch(self) -> Batch:
        """The three parts."""
        return Batch(self.inputs, self.targets, self.weights)

    @property
    def arrays(self) -> list[npt.NDArray[Any] | LazyArray]:
        """The arrays of all parts."""
        return flatten(self.batch)

    @property
    def spec(self) -> Batch:
        """The :class:`ArraySpec` of every array."""
        return map_structure(spec_of, self.batch)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays in memory."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def in_memory(self) -> bool:
        """Whether no array is lazy."""
        return all(isinstance(array, np.ndarray) for array in self.arrays)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Batch:
        """Read the examples at ``rows``."""
        return map_structure(lambda array: take_rows(array, rows), self.batch)


class Stream(Protocol):
    """Examples that come in a given order, already in batches."""

    @property
    def spec(self) -> Batch:
        """The :class:`ArraySpec` of every array, without the batch."""

    @property
    def batches(self) -> int | None:
        """Batches of an epoch; ``None`` if unknown, or if the stream never ends."""

    @property
    def batch_size(self) -> int | None:
        """Examples of a batch but the last; ``None`` if unknown."""

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        """Yield an epoch's batches of arrays.

        Args:
            epoch: The epoch, from 0.
            position: Number of batches of the epoch to leave out.
        """


@runtime_checkable
class StackingStream(Stream, Protocol):
    """A stream that can stack several batches faster than one by one."""

    def stacks(self, epoch: int, position: int, wanted: Callable[[], int]) -> Iterator[tuple[Batch, int]]:
        """Yield several batches of equal shapes at a time, ``[batches, batch, ...]``, and their number.

        Args:
            epoch: The epoch, from 0.
            position: Number of batches of the epoch to leave out.
            wanted: Returns how many batches are wanted at most.
        """


Examples: TypeAlias = Split | Stream
"""The examples of one split."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A dataset for training."""

    name: str
    """Name for titles."""
    train: Examples
    validation: Examples | None = None
    """The validation examples; ``None`` if there are none."""
    test: Examples | None = None
    """Examples that training never sees; ``None`` if there are none."""
    class_names: tuple[str, ...] = ()
    """Names of the classes, where targets are class indices, one-hot or multi-hot; empty otherwise."""
    task: str = "auto"
    """The task that the data suggests, one of :data:`accel_engine.data.data_options.TASKS`; ``auto`` if it suggests
    none."""
    kind: str = "arrays"
    """What an example is: ``images``, ``arrays``, ``table``, ``text``, ``tokens``, ``audio`` or ``series``."""
    feature_names: tuple[str, ...] = ()
    """Names of the columns of the inputs, if the input is a matrix; empty if unknown."""
    target_names: tuple[str, ...] = ()
    """Names of the columns of the targets; empty if unknown."""
    target_classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the classes of each of several targets that are classes."""
    vocabulary: tuple[str, ...] = ()
    """The text of each token, where inputs are tokens; empty otherwise."""
    sample_rate: int = 0
    """Samples per second of audio; 0 for other data."""
    preprocess: Callable[[], Any] | None = None
    """Makes a Keras model from raw columns to the inputs, which is saved with the trained model; ``None`` if inputs are
    used as they are."""
    original: Callable[[npt.NDArray[np.float32]], dict[str, npt.NDArray[Any]]] | None = None
    """Gives some rows of the inputs in the units and words of the user's table, by its columns; ``None`` if inputs are
    shown as they are."""
    raw_inputs: Mapping[str, Any] = field(default_factory=dict)
    """The rows of a table before ``preprocess`` by the name of the split, as
    :class:`accel_engine.data.tables.preprocessing.LazyMatrix`, if ``keeps_raw`` of the options says so."""
    columns: tuple[ColumnFormat, ...] = ()
    """How the columns of a series in a table were read; empty for other data."""
    target_scaling: Standardization | None = None
    """How float targets were standardised, for showing them in their units; ``None`` if they were not."""
    value_range: ValueRange = ValueRange()  # noqa: RUF009 (frozen)
    """Value range of the examples. They are scaled, if at all, in the training step, so that images are stored and
    transferred as bytes; see :mod:`accel_engine.data.pixel_scaling`."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    changes: tuple[Change, ...] = ()
    """What reading changes in the data."""
    warnings: tuple[str, ...] = ()
    """Warnings for the user."""

    @property
    def classes(self) -> int:
        """Number of classes; 0 if there are none."""
        return len(self.class_names)

    @property
    def spec(self) -> Batch:
        """The :class:`ArraySpec` of every array of an example."""
        return self.train.spec

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Shape of one example, without the batch; ``None`` if the model takes several inputs."""
        inputs = self.spec.inputs
        return inputs.shape if isinstance(inputs, ArraySpec) else None


def spec_of(array: npt.NDArray[Any] | LazyArray) -> ArraySpec:
    """The spec of an array ``[examples, ...]``."""
    return ArraySpec(tuple(array.shape[1:]), "string" if array.dtype.kind in "OUS" else array.dtype.name)


def take_rows(array: npt.NDArray[Any] | LazyArray, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
    """Read some rows of an array or a lazy array."""
    return array[rows] if isinstance(array, np.ndarray) else array.take(rows)


def nonfinite_rows(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows of an array have a number that is NaN or infinite, ``[rows]``."""
    if array.dtype.kind != "f" or not array.size:
        return np.zeros(len(array), np.bool_)
    step = max(1, _CHECKED // array[0].size)
    parts = (array[first : first + step] for first in range(0, len(array), step))
    return np.concatenate([~np.isfinite(part.reshape(len(part), -1)).all(axis=1) for part in parts])


def spread_rows(count: int, most: int) -> npt.NDArray[np.intp]:
    """The rows of ``count``, or as many of them as are wanted at equal distances, the first and the last included."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).astype(np.intp))


def fits_in_memory(nbytes: int) -> bool:
    """Whether to load examples of this size into the host's memory."""
    return nbytes <= MEMORY_SHARE * available_memory()


@dataclass(frozen=True, slots=True, eq=False)
class BoundedStream:
    """The first batches of a stream."""

    stream: Stream
    limit: int
    """Number of batches at most."""

    @property
    def spec(self) -> Batch:
        """The :class:`~accel_engine.data.structure.ArraySpec` of every array, without the batch."""
        return self.stream.spec

    @property
    def batches(self) -> int | None:
        """Batches of an epoch; ``None`` if unknown."""
        return None if self.stream.batches is None else min(self.limit, self.stream.batches)

    @property
    def batch_size(self) -> int | None:
        """Examples of a batch but the last; ``None`` if unknown."""
        return self.stream.batch_size

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        """Yield an epoch's batches of arrays, from a position on."""
        return islice(self.stream.read(epoch, position), max(0, self.limit - position))


def make_if_small(splits: list[Split]) -> list[Split]:
    """Make all examples of some splits if they are small, and return the splits unchanged otherwise."""
    total = sum(split.nbytes for split in splits)
    if total > LARGEST_MADE or not fits_in_memory(total):
        return splits
    return [Split(*split.take(np.arange(len(split)))) for split in splits]
