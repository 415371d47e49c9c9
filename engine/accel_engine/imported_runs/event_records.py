"""Reads the records of TensorBoard's event files; :mod:`accel_engine.tensorboard.records` has their format."""

import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from accel_engine.crc32c import checksum, checksums_of_rows
from accel_engine.words import numbers

_HEAD = struct.Struct("<QI")
_CHECK = struct.Struct("<I")

_BATCH = 1 << 13  # records whose checksums are computed together
_BATCH_BYTES = 1 << 24  # after which a batch ends

_LARGEST = 1 << 26
"""Bytes of the largest record that is read; larger ones are the graphs of models."""

_LARGEST_CHECKED = 1 << 12
"""Bytes up to which a record's data is checked together with others': all scalars are that small."""


class _Record(NamedTuple):
    """A record: the byte at which it begins, its data, and the checksum stored with it."""

    at: int
    data: bytes
    checksum: int


class EventRecords:
    """The intact records of a file, in order: the byte at which each begins, and its data.

    Args:
        file: The event file.

    Attributes:
        problem: After reading: why the end of the file, or some of its records, were not read; empty if all were.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._damaged, self._large = 0, 0
        self.problem = ""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        batch: list[_Record] = []
        size = 0
        for record in self._records():
            batch.append(record)
            size += len(record.data)
            if len(batch) == _BATCH or size >= _BATCH_BYTES:
                yield from self._intact(batch)
                batch, size = [], 0
        yield from self._intact(batch)
        counts = ((self._damaged, "damaged records"), (self._large, f"records of more than {numbers.size(_LARGEST)}"))
        left_out = (f"{count:,} {what} are left out" for count, what in counts if count)
        self.problem = "; ".join(filter(None, (self.problem, *left_out)))

    def _records(self) -> Iterator[_Record]:
        """The records that are not too large, with their stored checksums."""
        with self._file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            end = 0
            while end < size:
                at, head = end, stream.read(_HEAD.size)
                if len(head) == _HEAD.size and not _is_head(head):
                    self.problem = f"the record at byte {at:,} is damaged: what follows it is left out"
                    return
                length = _HEAD.unpack(head)[0] if len(head) == _HEAD.size else size
                end = at + _HEAD.size + length + _CHECK.size
                if end > size:
                    self.problem = "its last record is incomplete: the writer was interrupted, or still writes it"
                    return
                if length > _LARGEST:
                    self._large += 1
                    stream.seek(end)
                else:
                    yield _Record(at, stream.read(length), _CHECK.unpack(stream.read(_CHECK.size))[0])

    def _intact(self, batch: list[_Record]) -> Iterator[tuple[int, bytes]]:
        """The records whose checksums are right; all of one length are checked together."""
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for index, record in enumerate(batch):
            by_length[len(record.data)].append(index)
        damaged: set[int] = set()
        for length, indices in by_length.items():
            if 0 < length <= _LARGEST_CHECKED:
                rows = np.frombuffer(b"".join(batch[index].data for index in indices), np.uint8).reshape(-1, length)
                stored = np.array([batch[index].checksum for index in indices])
                damaged.update(np.array(indices)[checksums_of_rows(rows) != stored].tolist())
        self._damaged += len(damaged)
        yield from ((record.at, record.data) for index, record in enumerate(batch) if index not in damaged)


def record_at(file: Path, at: int, *, checked: bool) -> bytes:
    """Read again a record that :class:`EventRecords` has read.

    Args:
        file: The event file.
        at: The byte at which the record begins.
        checked: Whether to check also the data of a large record, which takes some milliseconds per MiB.

    Raises:
        OSError: The file cannot be read.
        ValueError: The record is damaged.
    """
    with file.open("rb") as stream:
        stream.seek(at)
        head = stream.read(_HEAD.size)
        if len(head) == _HEAD.size and _is_head(head):
            data = stream.read(min(_HEAD.unpack(head)[0], _LARGEST))
            if not checked or len(data) <= _LARGEST_CHECKED or stream.read(_CHECK.size) == checksum(data):
                return data
    raise ValueError("damaged record")


@lru_cache(maxsize=4096)
def _is_head(head: bytes) -> bool:
    """Whether the checksum of a record's length is right."""
    return bool(checksums_of_rows(np.frombuffer(head[:8], np.uint8)[None])[0] == _HEAD.unpack(head)[1])
