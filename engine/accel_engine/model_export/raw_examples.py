"""Reads the raw inputs of examples, as a served model gets them."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Examples, Split
from accel_engine.data.standardization import WindowNormalization
from accel_engine.data.structure import Batch, named_leaves
from accel_engine.data.tables.preprocessing import LazyMatrix
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.models.exported_model import INPUT, input_name
from accel_engine.requests.protocol.model_reference import EXAMPLES_AT_A_TIME
from accel_engine.trained.split_batches import batches, number_of_examples

SAMPLED = 512
"""Examples of a sample at most; a single batch may have more."""


class RawExamples:
    """The examples of a split, in batches, with their raw inputs by name.

    Args:
        dataset: The data; a table must have been loaded with ``keeps_raw``.
        split: The name of the split: ``training``, ``validation`` or ``test``.
        examples: Its examples.
        size: Examples of a batch; the batches of a stream have their own sizes.

    Raises:
        ModelError: The raw inputs are not known.
    """

    def __init__(self, dataset: Dataset, split: str, examples: Examples, size: int = EXAMPLES_AT_A_TIME) -> None:
        self._examples = examples
        self._size = size
        self._windows: WindowNormalization | None = None
        self._table: LazyMatrix | None = dataset.raw_inputs.get(split)
        if dataset.preprocess is None or self._table is not None:
            return
        if not isinstance(dataset.preprocess, WindowNormalization):
            raise ModelError(f"the raw inputs of {dataset.name} are not known after its preprocessing")
        self._windows = dataset.preprocess

    @property
    def count(self) -> int:
        """Number of examples; 0 if unknown."""
        return number_of_examples(self._examples)

    def batches(self) -> Iterator[tuple[Arrays, Batch]]:
        """Yield the raw inputs of each batch, and the batch as the dataset gives it."""
        for rows, batch in batches(self._examples, self._size):
            yield self._raw(rows, batch.inputs), batch

    def sampled(self) -> Iterator[Batch]:
        """Yield batches of some examples: of all parts of a split, or the first ones of a stream."""
        if not isinstance(self._examples, Split):
            yield from (batch for _, batch in islice(batches(self._examples), 1))
            return
        size = min(self._size, self.count)
        number = min(max(1, SAMPLED // size), self.count // size) * size
        rows = np.random.default_rng(0).permutation(np.linspace(0, self.count - 1, number).astype(np.int32))
        for start in range(0, number, size):
            yield self._examples.take(np.sort(rows[start : start + size]))

    def first(self, count: int) -> Arrays:
        """The raw inputs of the first examples; of a stream, at most of its first batch."""
        rows, batch = next(batches(self._examples, count))
        return {name: array[:count] for name, array in self._raw(rows, batch.inputs).items()}

    def spread(self, count: int) -> Arrays:
        """The raw inputs of some examples, from the whole of a split, or the first ones of a stream."""
        if not isinstance(self._examples, Split):
            return self.first(count)
        rows = np.unique(np.linspace(0, self.count - 1, min(count, self.count)).astype(np.int32))
        return self._raw(rows, self._examples.take(rows).inputs)

    def _raw(self, rows: npt.NDArray[np.int32], inputs: Any) -> dict[str, npt.NDArray[Any]]:
        if self._table is not None:
            return self._table.learned.raw(self._table.inputs, self._table.rows[rows])
        if self._windows is not None:
            return {INPUT: self._windows.scaling.restore(inputs).astype(self._windows.dtype)}
        return {input_name(path): np.asarray(array) for path, array in named_leaves(inputs)}
