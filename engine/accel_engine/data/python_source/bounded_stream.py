"""Bounds the batches of a stream that may never end."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from accel_engine.data.dataset import Stream
from accel_engine.data.structure import Batch


@dataclass(frozen=True, slots=True, eq=False)
class BoundedStream:
    """The first batches of a stream.

    Attributes:
        stream: The stream.
        limit: Number of batches at most.
    """

    stream: Stream
    limit: int

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
