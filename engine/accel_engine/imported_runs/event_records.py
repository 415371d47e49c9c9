"""Reads the records of TensorBoard's event files; :mod:`accel_engine.tensorboard.records` has their format."""

import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from accel_engine.tensorboard.records import checksums

_HEAD = struct.Struct("<QI")
_CHECK = struct.Struct("<I")

_BATCH = 1 << 13  # records whose checksums are computed together

_LARGEST_CHECKED = 1 << 12
"""Bytes up to which a record's data is checked; larger ones are images and the like, not scalars."""


class EventRecords:
    """The intact records of a file, in order.

    Args:
        file: The event file.

    Attributes:
        problem: After reading: why the end of the file, or some of its records, were not read; empty if all were.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._damaged = 0
        self.problem = ""

    def __iter__(self) -> Iterator[bytes]:
        batch: list[tuple[bytes, int]] = []
        for record in self._records():
            batch.append(record)
            if len(batch) == _BATCH:
                yield from self._intact(batch)
                batch = []
        yield from self._intact(batch)
        if self._damaged:
            count = f"{self._damaged:,} damaged records are left out"
            self.problem = f"{self.problem}; {count}" if self.problem else count

    def _records(self) -> Iterator[tuple[bytes, int]]:
        """The data of each record, with its stored checksum."""
        with self._file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            at = 0
            while at < size:
                head = stream.read(_HEAD.size)
                if len(head) == _HEAD.size and not _is_head(head):
                    self.problem = f"the record at byte {at:,} is damaged: what follows it is left out"
                    return
                length = _HEAD.unpack(head)[0] if len(head) == _HEAD.size else size
                at += _HEAD.size + length + _CHECK.size
                if at > size:
                    self.problem = "its last record is incomplete: the writer was interrupted, or still writes it"
                    return
                data = stream.read(length)
                yield data, _CHECK.unpack(stream.read(_CHECK.size))[0]

    def _intact(self, batch: list[tuple[bytes, int]]) -> Iterator[bytes]:
        """The records whose checksums are right; those of one length are checked together."""
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for index, (data, _) in enumerate(batch):
            by_length[len(data)].append(index)
        damaged: set[int] = set()
        for length, indices in by_length.items():
            if 0 < length <= _LARGEST_CHECKED:
                rows = np.frombuffer(b"".join(batch[index][0] for index in indices), np.uint8).reshape(-1, length)
                stored = np.array([batch[index][1] for index in indices])
                damaged.update(np.array(indices)[checksums(rows) != stored].tolist())
        self._damaged += len(damaged)
        yield from (data for index, (data, _) in enumerate(batch) if index not in damaged)


@lru_cache(maxsize=4096)
def _is_head(head: bytes) -> bool:
    """Whether the checksum of a record's length is right."""
    return bool(checksums(np.frombuffer(head[:8], np.uint8)[None])[0] == _HEAD.unpack(head)[1])
