"""Streams of a ``tf.data.Dataset``."""

import _thread
import ctypes
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from accel_engine.data.python_source.pass_stream import Explained, PassStream
from accel_engine.data.structure import ArraySpec, Batch, flatten, map_structure
from accel_engine.errors import DataError
from accel_engine.private_names.tensorflow_names import dataset_inputs, dataset_operations

_KEEPS_STATE = re.compile("PyFunc|GeneratorDataset|Assign|Rng|Scatter|Insert|Queue|GetNext")
"""Operations that have an effect on later passes. Random numbers do not: each iterator starts them anew."""

_SECONDS = 0.05
"""About how long batches are collected for a stack."""


class FreedIterator(Iterator[Any]):
    """An iterator of a ``tf.data.Dataset`` that is freed in its own thread, without waiting for TensorFlow.

    An iterator has a thread that tunes its pipeline, and sleeps for up to as long as the iterator exists, a minute at
    most. When the iterator is freed, TensorFlow wakes this thread and waits for its end. But it wakes it before it
    tells it to end (``CancellationManager::StartCancelWithStatus`` sets ``is_cancelled_`` after it has called the
    callbacks), so that the thread may go to sleep again. Seen in TensorFlow 2.21, in one of five pauses of a run.

    Args:
        iterator: The iterator, to which nothing else refers then.
    """

    def __init__(self, iterator: Any) -> None:
        self._reference = [iterator]

    @property
    def inner(self) -> Any:
        """TensorFlow's iterator; keep no reference to it."""
        return self._reference[0]

    def __next__(self) -> Any:
        """The next element."""
        return next(self._reference[0])

    def __del__(self) -> None:
        """Free the iterator, unless Python ends: the process will free it."""
        if sys.is_finalizing():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._reference))
        else:  # without a lock, unlike threading.Thread, as this may be called anywhere
            _thread.start_new_thread(self._reference.clear, ())


class TfDataStream(PassStream):
    """Batches of a ``tf.data.Dataset`` of ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.

    A dataset that shuffles chooses another order for every iterator that is made of it, so that the order of a pass
    depends on how many were made before.

    Args:
        dataset: The dataset, batched or not.
        again: Makes it once more, with the random seeds of the first time.
        batch_size: The plan's batch size, for a dataset that is not batched.
        explained: Converts errors of the user's code.
        ordered: Whether a pass must always give the same batches; otherwise, any pass over the data will do.

    Raises:
        DataError: The dataset has elements that cannot be trained on.
    """

    def __init__(
        self,
        dataset: tf.data.Dataset,
        again: Callable[[], tf.data.Dataset],
        batch_size: int,
        explained: Explained,
        *,
        ordered: bool = True,
    ) -> None:
        _check_spec(dataset.element_spec)
        self.batched_here = not is_batched(dataset)
        self._size = batch_size
        self._dataset = self._prepared(dataset)
        self._stacks = BatchStacks(self._dataset.element_spec)
        self._again, self._ordered = again, ordered
        cardinality = int(self._dataset.cardinality())
        self.endless = cardinality == tf.data.INFINITE_CARDINALITY
        self._replay = _effects(self._dataset) if ordered else "nothing"
        spec = _as_batch(self._dataset.element_spec)
        if self._replay == "all":
            unsaved = "TensorFlow cannot save the position of this tf.data.Dataset, e.g. because of from_generator"
            self.read_again = f"{unsaved}: its batches"
        known = None if cardinality < 0 else cardinality
        size = batch_size if self.batched_here else flatten(spec)[0].shape[0]
        super().__init__(map_structure(_example_spec, spec), known, size, explained)

    def stacks(self, epoch: int, position: int, wanted: Callable[[], int]) -> Iterator[tuple[Batch, int]]:
        """Yield several batches of equal shapes at a time, and their number; see :meth:`read`."""
        self._seek(epoch, position)
        assert isinstance(self._iterator, FreedIterator)  # noqa: S101 (:meth:`_open` made it)
        read = self._stacks.read(self._iterator, wanted)
        while True:
            with self._explained(f"failed after batch {self._position} of pass {self._epoch + 1}"):
                item = next(read, None)
            if item is None:
                return
            stack, number, drawn = item
            self._position = position + drawn
            yield _as_batch(stack), number

    def _prepared(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        return dataset.batch(self._size).prefetch(tf.data.AUTOTUNE) if self.batched_here else dataset

    def _restart(self, epoch: int) -> None:
        if self._replay == "nothing":
            self._epoch = epoch - 1
            return
        if self._epoch >= 0:
            self._dataset = self._prepared(self._again())
        self._epoch = -1

    def _open(self, epoch: int) -> FreedIterator:
        with tf.device("/CPU:0"):
            return FreedIterator(iter(self._dataset))

    def _pass_over(self, epoch: int) -> None:
        if self._replay == "all":
            super()._pass_over(epoch)
            return
        iterator = self._open(epoch)
        if self._replay == "first batch":
            next(iterator, None)

    def _batch(self, element: Any) -> Batch:
        return _as_batch(element)


def is_batched(dataset: tf.data.Dataset) -> bool:
    """Whether a dataset gives batches, by the steps that it is made of and by its shapes.

    Where neither tells, it does, as Keras' ``fit`` takes nothing else.
    """
    shapes = [spec.shape for spec in flatten(_as_batch(dataset.element_spec))]
    if any(shape.rank == 0 for shape in shapes):
        return False
    step = dataset
    while True:
        kind = _kind(step)
        inputs = dataset_inputs(step)
        if "Batch" in kind and kind not in ("UnbatchDataset", "GroupByWindowDataset"):
            return True
        if kind == "TensorSliceDataset":
            return False
        if not inputs or kind in _NEW_ELEMENTS:
            break
        step = inputs[-1]  # the first one of some merged datasets chooses among the others
    first = {None if shape.rank is None else shape[0] for shape in shapes}
    return len(first) == 1 or None in first


_NEW_ELEMENTS = (
    "FlatMapDataset",
    "InterleaveDataset",
    "ParallelInterleaveDataset",
    "GroupByWindowDataset",
    "UnbatchDataset",
    "WindowDataset",
)
"""Steps whose elements tell nothing about the elements of the step before."""


def _kind(dataset: tf.data.Dataset) -> str:
    return type(dataset).__name__.lstrip("_")


def _effects(dataset: tf.data.Dataset) -> str:
    """The parts of earlier passes that must be repeated, so that later passes give the same batches.

    ``nothing``; ``iterator``: each makes its iterator; ``first batch``: each reads that, too; ``all``: all batches.
    """
    kinds, steps = [], [dataset]
    while steps:
        step = steps.pop()
        inputs, operations = dataset_inputs(step), dataset_operations(step)
        if inputs is None or operations is None or any(map(_KEEPS_STATE.search, operations)):
            return "all"
        kinds.append(_kind(step))
        steps += inputs
    shuffles = sum("Shuffle" in kind for kind in kinds)
    if "RandomDataset" in kinds or (shuffles and "RepeatDataset" in kinds):
        return "all"
    if not shuffles:
        return "nothing"
    # The seeds of a shuffle that reads from another one are drawn when the first element is read.
    return "iterator" if shuffles == 1 else "first batch"


def _as_batch(element: Any) -> Batch:
    if not isinstance(element, tuple):
        return Batch(element)
    if not 1 <= len(element) <= 3:
        raise DataError(f"expected x, (x, y) or (x, y, sample_weight), but the dataset has {len(element)} parts")
    return Batch(*element)


def _check_spec(spec: Any) -> None:
    for each in flatten(_as_batch(spec)):
        if isinstance(each, tf.RaggedTensorSpec | tf.SparseTensorSpec):
            kind = "ragged" if isinstance(each, tf.RaggedTensorSpec) else "sparse"
            raise DataError(f"the dataset has {kind} tensors; make them dense, e.g. with padded_batch or to_tensor()")
        if not isinstance(each, tf.TensorSpec):
            raise DataError(f"the dataset has elements of type {type(each).__name__}, not tensors")
    if not flatten(_as_batch(spec)):
        raise DataError("the dataset has no tensors")


def _example_spec(spec: tf.TensorSpec) -> ArraySpec:
    if spec.shape.rank is None:
        raise DataError("the dataset has tensors of unknown rank; give their shapes, e.g. with tf.ensure_shape")
    return ArraySpec(tuple(spec.shape[1:]), spec.dtype.name)


class BatchStacks:
    """Reads iterators of a dataset in stacks of batches of equal shapes.

    Args:
        spec: The ``element_spec`` of the ``tf.data.Dataset``.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._take = tf.function(self._stack, autograph=False)

    def read(self, iterator: FreedIterator, wanted: Callable[[], int]) -> Iterator[tuple[Any, int, int]]:
        """Yield stacks of at most as many batches as are wanted, their numbers, and how many were drawn in all.

        One of those drawn may wait for the next stack.
        """
        with tf.device("/CPU:0"):
            waiting, most = iterator.inner.get_next_as_optional(), 1
        drawn = int(waiting.has_value())
        while waiting.has_value():
            began = time.monotonic()
            with tf.device("/CPU:0"):
                stack, count, waiting = self._take(iterator.inner, waiting, tf.constant(max(1, min(wanted(), most))))
            number = int(count)
            drawn += number - 1 + int(waiting.has_value())
            rate = number / max(time.monotonic() - began, 1e-6)
            most = max(1, min(int(rate * _SECONDS), 4 * most))
            yield stack, number, drawn

    def _stack(self, iterator: Any, first: Any, count: tf.Tensor) -> tuple[Any, tf.Tensor, Any]:
        """A stack that begins with a batch, its number of batches, and the batch that follows."""
        shapes = [tf.shape(each) for each in flatten(first.get_value())]
        fixed = all(spec.shape.is_fully_defined() for spec in flatten(self._spec))

        def fits(optional: Any) -> tf.Tensor:
            if fixed:
                return optional.has_value()

            def same() -> tf.Tensor:
                own = [tf.shape(each) for each in flatten(optional.get_value())]
                return tf.reduce_all([tf.reduce_all(a == b) for a, b in zip(own, shapes, strict=True)])

            return tf.cond(optional.has_value(), same, lambda: False)

        def step(index: tf.Tensor, arrays: list[Any], optional: Any) -> tuple[Any, ...]:
            values = flatten(optional.get_value())
            written = [array.write(index, value) for array, value in zip(arrays, values, strict=True)]
            return index + 1, written, iterator.get_next_as_optional()

        empty = [
            tf.TensorArray(spec.dtype, count, dynamic_size=True, element_shape=spec.shape, infer_shape=False)
            for spec in flatten(self._spec)
        ]
        number, arrays, following = tf.while_loop(
            lambda index, _, optional: (index < count) & fits(optional), step, (tf.constant(0), empty, first)
        )
        stacked = iter(array.gather(tf.range(number)) for array in arrays)
        return tf.nest.map_structure(lambda _: next(stacked), self._spec), number, following
