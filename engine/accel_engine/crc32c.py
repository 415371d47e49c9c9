"""Checksums of TFRecord files: CRC-32C (RFC 3720), masked as TensorFlow's ``record_writer.cc`` does.

NumPy computes them for many messages at once, and for the blocks of a long one: some nanoseconds a byte.
"""

import struct
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.uint8]
"""Messages of one length, ``[messages, bytes]``."""

_Numbers = npt.NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_BLOCK = 64
"""Bytes that are computed one after another; the CRCs of the blocks are then joined."""

_GROUP = 1 << 20
"""Bytes of messages that are computed together."""


def checksums_of_rows(rows: Rows) -> _Numbers:
    """Compute the checksum of every message, ``[messages]``."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = _TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return _masked(crc)


def checksum(message: bytes) -> bytes:
    """Compute the checksum of one message as it is stored."""
    return struct.pack("<I", checksums_of([message])[0])


def checksums_of(messages: Sequence[bytes]) -> _Numbers:
    """Compute the checksums of messages of any length, ``[messages]``."""
    found = np.zeros(len(messages), np.uint32)
    sizes = np.array([len(message) for message in messages], np.int64)
    units = np.maximum(_BLOCK, 1 << np.maximum(np.frexp(sizes)[1] - 4, 0).astype(np.int64))
    widths = np.maximum(-(-sizes // units), 1) * units  # few different ones, for messages of similar lengths
    for width in np.unique(widths).tolist():
        places = np.flatnonzero(widths == width)
        most = max(1, _GROUP // width)
        for first in range(0, len(places), most):
            group = places[first : first + most]
            found[group] = _of_width([messages[place] for place in group.tolist()], width)
    short = np.flatnonzero(sizes < 4)
    for place in short.tolist():
        found[place] = checksums_of_rows(np.frombuffer(messages[place], np.uint8)[np.newaxis])[0]
    return found


def _of_width(messages: list[bytes], width: int) -> _Numbers:
    """The checksums of messages of at most ``width`` bytes, a multiple of the block; wrong for fewer than 4 bytes."""
    padded = np.zeros((len(messages), width), np.uint8)  # in front, where zeros change nothing
    for row, message in zip(padded, messages, strict=True):
        start = width - len(message)
        row[start:] = np.frombuffer(message, np.uint8)
        row[start : start + 4] ^= 0xFF  # instead of a first value of all ones
    crc = np.zeros(len(messages) * width // _BLOCK, np.uint32)
    for column in np.ascontiguousarray(padded.view("<u4").reshape(len(crc), -1).T):
        crc = _followed_by_zeros(crc ^ column, 4)
    blocks, size = crc.reshape(len(messages), -1), _BLOCK
    while blocks.shape[1] > 1:
        if blocks.shape[1] % 2:
            blocks = np.pad(blocks, [(0, 0), (1, 0)])
        blocks = _followed_by_zeros(blocks[:, ::2], size) ^ blocks[:, 1::2]
        size *= 2
    return _masked(blocks[:, 0])


def _followed_by_zeros(crc: _Numbers, count: int) -> _Numbers:
    """The CRCs after ``count`` zero bytes, a power of two."""
    low, high = _zeros(count)
    return low[crc & 0xFFFF] ^ high[crc >> 16]


@cache
def _zeros(count: int) -> tuple[_Numbers, _Numbers]:
    """What each lower and each upper half of a CRC becomes after ``count`` zero bytes, a power of two."""
    half = np.arange(1 << 16, dtype=np.uint32)
    if count > 1:
        low, high = (_followed_by_zeros(each, count // 2) for each in _zeros(count // 2))
        return low, high
    low, high = (_TABLE[each & 0xFF] ^ (each >> 8) for each in (half, half << np.uint32(16)))
    return low, high


def _masked(crc: _Numbers) -> _Numbers:
    crc = ~crc
    return ((crc >> 15 | crc << 17) + np.uint32(_MASK)).astype(np.uint32)


def _table() -> _Numbers:
    table = np.arange(256)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ _POLYNOMIAL, table >> 1)
    return table.astype(np.uint32)


_TABLE = _table()
