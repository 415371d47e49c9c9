"""Finds the records of TFRecord files, packed or not, and reads them by row; without TensorFlow.

A record is its length as 8 bytes, little-endian, a checksum of 4 bytes, its content, and a checksum of 4 bytes
(https://www.tensorflow.org/tutorials/load_data/tfrecord). Checksums are looked at when a record is first read.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.crc32c import checksums_of, checksums_of_rows
from accel_engine.data.prepared.columns import Rows
from accel_engine.errors import DataError, file_errors
from accel_engine.files import regular
from accel_engine.memory import available_memory
from accel_engine.words import numbers

Bytes = npt.NDArray[np.uint8]
"""The content of a file."""

_BEFORE, _AFTER = 12, 4
"""Bytes of a record before and after its content."""

_FIRST = 1 << 24
"""Bytes of a packed file that are unpacked for its first records."""

_BLOCK = 1 << 20
_GZIP_OR_ZLIB = 47
"""Window bits by which zlib unpacks both forms."""


class Records:
    """The records of some files, one after the other.

    Args:
        names: The names of the files, for messages.
        contents: What is in each.
        limit: Maximum number of records that are looked for.

    Raises:
        DataError: A file has something else, or ends too early; or there is no record.
    """

    def __init__(self, names: Sequence[str], contents: Sequence[Bytes], limit: int | None = None) -> None:
        self._names, self._contents = tuple(names), tuple(contents)
        self.complete = True
        """Whether all records were found, not only those up to the limit."""
        found: list[Bytes | npt.NDArray[np.int64]] = []
        count = 0
        for number, (name, content) in enumerate(zip(names, contents, strict=True)):
            places, complete = _find_records(name, content, None if limit is None else limit - count)
            self.complete = self.complete and complete
            count += len(places)
            found.append(np.insert(places, 0, number, axis=1))
        if not count:
            raise DataError(f"{', '.join(names)} is empty")
        self._files, self._offsets, self._lengths = np.concatenate(found).T
        self._is_checked = np.zeros(count, np.bool_)

    def __len__(self) -> int:
        return len(self._files)

    def get(self, rows: Rows) -> list[bytes | None]:
        """The contents of the records at ``rows``; ``None`` for those whose checksum is wrong."""
        read = [self._read(row) for row in rows.tolist()]
        new = np.flatnonzero(~self._is_checked[rows])
        contents: list[bytes | None] = [content for content, _ in read]
        if len(new):
            stored = np.frombuffer(b"".join(read[place][1] for place in new.tolist()), "<u4")
            right = checksums_of([read[place][0] for place in new.tolist()]) == stored
            self._is_checked[rows[new[right]]] = True
            for place in new[~right].tolist():
                contents[place] = None
        return contents

    def name(self, row: int) -> str:
        """The file of a record, and its number there from 0."""
        number = int(self._files[row])
        return f"record {row - int(np.searchsorted(self._files, number))} of {self._names[number]}"

    def _read(self, row: int) -> tuple[bytes, bytes]:
        """The content and the checksum of a record."""
        first, length = int(self._offsets[row]), int(self._lengths[row])
        content = self._contents[int(self._files[row])][first : first + length + _AFTER].tobytes()
        return content[:length], content[length:]


def open_records(paths: Sequence[Path], limit: int | None = None) -> Records:
    """Open files: plain ones stay where they are, packed ones are unpacked into memory.

    Raises:
        DataError: A file cannot be read, is damaged, or does not fit in memory.
    """
    return Records(list(map(str, paths)), list(map(_content, paths)), limit)


def first_records(path: Path, count: int) -> list[bytes]:
    """The first whole records of a file; of a compressed one, the records in its first bytes.

    Raises:
        DataError: The file cannot be read, or has no TFRecords.
    """
    content = _content(path, _FIRST)
    places, _ = _find_records(str(path), content, count, is_start=True)
    return [content[first : first + length].tobytes() for first, length in places.tolist()]


def is_packed(path: Path) -> bool:
    """Whether a file is packed, so that only unpacking it tells its records.

    Raises:
        DataError: The file cannot be read.
    """
    return _is_packed(_mapped(path)[:_BEFORE].tobytes())


def unpacked_file(name: str, content: Bytes, limit: int | None = None) -> Bytes:
    """The content of a file, unpacked if it is packed.

    Args:
        name: The file, for messages.
        content: What is in it.
        limit: Bytes to unpack; all by default.

    Raises:
        DataError: The file is damaged, or does not fit in memory.
    """
    if not _is_packed(content[:_BEFORE].tobytes()):
        return content
    parts, size, free = [], 0, available_memory()
    try:
        for part in _unpack(content):
            parts.append(part)
            size += len(part)
            if size > free:
                sizes = f"they take more than {numbers.size(size)}, and {numbers.size(free)} are available"
                raise DataError(f"the unpacked records of {name} do not fit in memory: {sizes}")
            if limit is not None and size >= limit:
                break
    except (EOFError, zlib.error) as error:
        raise DataError(f"cannot unpack {name}: {error}") from error
    return np.frombuffer(b"".join(parts), np.uint8)


def _unpack(content: Bytes) -> Iterator[bytes]:
    """The content of a packed file, which may be several one after the other, in parts of bounded size."""
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    for first in range(0, len(content), _BLOCK):
        left = content[first : first + _BLOCK].tobytes()
        while left:
            if unpacker.eof:
                unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
            yield unpacker.decompress(left, _BLOCK)
            left = unpacker.unused_data.lstrip(b"\0") if unpacker.eof else unpacker.unconsumed_tail
    while tail := unpacker.decompress(b"", _BLOCK) if not unpacker.eof else b"":
        yield tail
    if not unpacker.eof:
        raise EOFError("it ends too early: the file is not complete")


def _is_packed(start: bytes) -> bool:
    """Whether a file begins as gzip or zlib write it."""
    is_zlib = len(start) > 1 and start[0] & 0x0F == 8 and int.from_bytes(start[:2], "big") % 31 == 0
    return not _is_head(start) and (start.startswith(b"\x1f\x8b") or is_zlib)


def _is_head(start: bytes) -> bool:
    """Whether the checksum of a record's length is right."""
    if len(start) < _BEFORE:
        return False
    return bool(
        checksums_of_rows(np.frombuffer(start, np.uint8, 8)[np.newaxis])[0] == struct.unpack_from("<I", start, 8)[0]
    )


def _content(path: Path, limit: int | None = None) -> Bytes:
    return unpacked_file(str(path), _mapped(path), limit)


def _mapped(path: Path) -> Bytes:
    with file_errors(f"cannot read {path}", DataError):
        size = regular(path).stat().st_size
        return np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)  # which cannot be mapped


def _find_records(
    name: str, content: Bytes, limit: int | None, *, is_start: bool = False
) -> tuple[npt.NDArray[np.int64], bool]:
    """Offset and length of each record, ``[records, 2]``, and whether these are all.

    Args:
        name: The file, for messages.
        content: What is in it.
        limit: Maximum number of records.
        is_start: Whether the content may be only the start of a file.
    """
    found: list[tuple[int, int]] = []
    view, end, at = content.data, len(content), 0
    while at < end and (limit is None or len(found) < limit):
        length = struct.unpack_from("<Q", view, at)[0] if at + _BEFORE <= end else end
        if at + _BEFORE + length + _AFTER > end:
            if is_start and found:
                break
            if (found and at + _BEFORE > end) or _is_head(view[at : at + _BEFORE].tobytes()):
                raise DataError(f"{name} ends within record {len(found)}: the file is not complete")
            raise DataError(_damaged(name, len(found)))
        found.append((at + _BEFORE, length))
        at += _BEFORE + length + _AFTER
    places = np.array(found, np.int64).reshape(-1, 2)
    heads = np.frombuffer(b"".join(view[first - _BEFORE : first] for first in places[:, 0].tolist()), np.uint8)
    heads = heads.reshape(-1, _BEFORE)
    right = checksums_of_rows(heads[:, :8]) == np.ascontiguousarray(heads[:, 8:]).view("<u4")[:, 0]
    if not right.all():
        raise DataError(_damaged(name, int(np.argmin(right))))
    return places, at >= end


def _damaged(name: str, record: int) -> str:
    return f"{name} is damaged at record {record}: its length is wrong" if record else f"{name} is not a TFRecord file"
