"""Keeps the values of every validation example, and reads the worst examples again with the model's outputs."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Examples, Split
from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.training.evaluation.task_report import TaskReport


class WorstExamples:
    """The values of a validation's examples, of which some can be read again.

    Args:
        data: The validation examples. Of a stream, only the first and the worst can be read again.
        report: Says how many; ``None`` if none are read.
        outputs: From raw inputs to the model's outputs, as tensors.

    Attributes:
        examples: Number of examples.
    """

    def __init__(self, data: Examples, report: TaskReport | None, outputs: Callable[[Structure], Structure]) -> None:
        self._data = data
        self._most = report.worst if report else 0
        self._first = report.first if report else 0
        self._outputs = outputs
        self.clear()

    def clear(self) -> None:
        """Forget all examples."""
        self.examples = 0
        self._parts: list[tuple[npt.NDArray[Any], npt.NDArray[np.float32]]] = []
        self._known: dict[int, tuple[float, Batch]] = {}

    def add(
        self,
        values: npt.NDArray[np.float32],
        first: int,
        rows: npt.NDArray[np.int32] | None,
        batch: Batch | None,
        *,
        repeated: bool,
    ) -> None:
        """Add the values of a batch.

        Args:
            values: ``[replicas * batch, width]``, of which the first column is the loss.
            first: Index of the first example of a stream's batch; unused with ``rows``.
            rows: Row numbers, ``[replicas, batch]``; ``None`` for a stream.
            batch: The examples of a stream.
            repeated: Whether all replicas had the same examples.
        """
        if rows is not None:
            replicas = 1 if repeated else len(rows)
            chosen = rows[:replicas].reshape(-1)
            self._parts.append((chosen, values[: len(chosen)]))
            return
        own = np.arange(first, first + (1 if repeated else len(values)))
        self._parts.append((own, values[: len(own)]))
        assert batch is not None  # noqa: S101 (a stream's batch has no row numbers)
        losses = np.nan_to_num(values[: len(own), 0], nan=np.inf)
        places = {
            *np.argsort(-losses, kind="stable")[: self._most].tolist(),
            *np.flatnonzero(own < self._first).tolist(),
        }
        for place in places:
            example = map_structure(lambda array, place=place: np.asarray(array)[place], batch)
            self._known[int(own[place])] = (float(losses[place]), example)
        ranked = sorted(self._known, key=lambda index: (-self._known[index][0], index))
        for index in ranked[self._most :]:
            if index >= self._first:
                del self._known[index]

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """The values of all examples, in the order of the data."""
        rows = np.concatenate([rows for rows, _ in self._parts])
        every = np.zeros((int(rows.max()) + 1, self._parts[0][1].shape[1]), np.float32)
        every[rows] = np.concatenate([values for _, values in self._parts])
        return every

    def read(self, indices: npt.NDArray[np.int64]) -> tuple[Batch, Structure]:
        """Some examples, as NumPy arrays before scaling, and the model's outputs for them."""
        if isinstance(self._data, Split):
            batch = self._data.take(indices)
        else:
            chosen = [self._known[int(index)][1] for index in indices]
            batch = map_structure(_padded, *chosen)
        return batch, self.predict(batch.inputs)

    def predict(self, inputs: Structure) -> Structure:
        """The model's outputs for raw inputs, as NumPy arrays."""
        return keras.tree.map_structure(np.asarray, self._outputs(map_structure(tf.convert_to_tensor, inputs)))


def _padded(*arrays: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Stack examples of several sizes, padded with zeros to the largest."""
    shape = tuple(max(sides) for sides in zip(*(array.shape for array in arrays), strict=True))
    stacked = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for row, array in enumerate(arrays):
        own: tuple[int | slice, ...] = (row, *(slice(side) for side in array.shape))
        stacked[own] = array
    return stacked
