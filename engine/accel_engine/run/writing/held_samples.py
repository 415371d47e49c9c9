"""Device samples in memory, until they can be written."""

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence

from accel_engine.devices.device_types import Sample
from accel_engine.run.store.database import Database
from accel_engine.run.store.sample_packing import SamplePacker

MAX_HELD = 1 << 15
"""Maximum number of samples: an hour of nine devices."""


class HeldSamples:
    """The latest samples that are not written yet.

    Attributes:
        dropped: Number of samples that did not fit in memory.
    """

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=MAX_HELD)
        self._packer = SamplePacker()
        self.dropped = 0

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples)

    def add(self, samples: Sequence[Sample]) -> None:
        """Add samples; they take the place of the oldest ones if there are too many."""
        self.dropped += max(0, len(self._samples) + len(samples) - MAX_HELD)
        self._samples.extend(samples)

    def insert(self, database: Database) -> None:
        """Write the samples; they are held no longer unless the database fails."""
        if not self._samples:
            return
        try:
            packer, self._packer = self._packer, SamplePacker()  # a new one in case the insert fails
            rows = [(sample.time, sample.device, packer.pack(sample)) for sample in self._samples]
            with database.transaction():
                database.add_samples(rows)
            self._packer = packer
        except sqlite3.OperationalError:
            raise
        except BaseException:
            self.clear()  # these can never be written
            raise
        self.clear()

    def clear(self) -> None:
        """Forget all samples, which are written."""
        self._samples.clear()

    def __len__(self) -> int:
        return len(self._samples)

    def take_dropped(self) -> int:
        """The number of samples that were dropped since the last call."""
        dropped, self.dropped = self.dropped, 0
        return dropped
