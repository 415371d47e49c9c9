"""A stream of batches in memory, for tests."""

from collections.abc import Callable, Iterator

import numpy as np

from accel_engine.data.dataset import Dataset, Split, spec_of
from accel_engine.data.structure import Batch, flatten, map_structure

EXAMPLES, SIZE = 200, 32
"""Six batches of 32 examples and one of 8."""

_RNG = np.random.default_rng(4)
X = _RNG.normal(size=(EXAMPLES, 6)).astype(np.float32)
Y = X[:, :3].argmax(-1).astype(np.int32)
ROWS = Split(X, Y)


class Recorded:
    """Batches of some rows, in their order.

    Args:
        rows: The examples.
        size: Examples of a batch.
        length: Whether the number of batches is known.
        before: Called before each batch with the pass and the batch's index.

    Attributes:
        reads: The pass and the position of each reading.
        given: Number of batches given.
    """

    def __init__(
        self,
        rows: Split = ROWS,
        size: int = SIZE,
        *,
        length: bool = True,
        before: Callable[[int, int], None] | None = None,
    ) -> None:
        self._rows, self._size, self._length = rows, size, length
        self._before = before or (lambda *_: None)
        self.reads: list[tuple[int, int]] = []
        self.given = 0

    @property
    def spec(self) -> Batch:
        spec: Batch = map_structure(spec_of, self._rows.batch)
        return spec

    @property
    def batches(self) -> int | None:
        return -(-len(self._rows) // self._size) if self._length else None

    @property
    def batch_size(self) -> int | None:
        return self._size

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        self.reads.append((epoch, position))
        for index in range(position, -(-len(self._rows) // self._size)):
            self._before(epoch, index)
            self.given += 1
            yield self._rows.take(np.arange(index * self._size, min((index + 1) * self._size, len(self._rows))))


def dataset(train: object, validation: object = None) -> Dataset:
    """A dataset of three classes."""
    return Dataset("streamed", train, validation, class_names=("a", "b", "c"), task="classification")


def sizes(stacks: object) -> tuple[int, ...]:
    """The shape of the first array of a segment's batches, without the shape of an example."""
    return tuple(flatten(stacks)[0].shape[:2])
