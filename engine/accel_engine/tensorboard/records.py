"""Encodes the records of TensorBoard's event files, all scalars of a tag at a time.

A file is a sequence of TFRecords: the length of the data (8 bytes), its checksum (4), the data, its checksum (4). The
data is an ``Event`` message. Scalars of one tag have equal lengths, so that NumPy encodes and checksums them column by
column: a million take some tenths of a second.

Sources: ``event.proto``, ``summary.proto`` and ``record_writer.cc`` of TensorFlow.
"""

import struct
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from accel_engine.crc32c import Rows, checksum, checksums_of_rows
from accel_engine.protobuf import bytes_field, double_field, integer_field, length_prefix, text_field

_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY, _SESSION_LOG = 1, 2, 3, 5, 7  # fields of Event
_VALUE = 1  # of Summary
_TAG, _SIMPLE_VALUE = 1, 2  # of Summary.Value
_STATUS, _START = 1, 1  # of SessionLog

_FLOAT_KEY = bytes([_SIMPLE_VALUE << 3 | 5])
_BATCH = 1 << 13  # messages per checksum call, so that they fit in the processor's cache


def version_record(time: float) -> bytes:
    """Encode the first record of a file.

    Args:
        time: Seconds since the Unix epoch.
    """
    return _record(double_field(_WALL_TIME, time) + text_field(_FILE_VERSION, "brain.Event:2"))


def restart_record(time: float, step: int) -> bytes:
    """Encode the record that makes TensorBoard discard the steps from ``step`` on."""
    started = bytes_field(_SESSION_LOG, integer_field(_STATUS, _START))
    return _record(double_field(_WALL_TIME, time) + integer_field(_STEP, step) + started)


def summary_record(tag: str, time: float, step: int, value: bytes) -> bytes:
    """Encode a value of any kind.

    Args:
        tag: The tag.
        time: Seconds since the Unix epoch.
        step: Not negative.
        value: The fields of its ``Summary.Value``, without the tag.
    """
    summary = bytes_field(_SUMMARY, bytes_field(_VALUE, text_field(_TAG, tag) + value))
    return _record(double_field(_WALL_TIME, time) + integer_field(_STEP, step) + summary)


def scalars(
    tag: str, times: npt.NDArray[np.float64], steps: npt.NDArray[np.int64], values: npt.NDArray[np.float32]
) -> bytes:
    """Encode scalars of one tag.

    Args:
        tag: The tag.
        times: Seconds since the Unix epoch, ``[n]``.
        steps: Not negative, ``[n]``.
        values: Values ``[n]``.
    """
    # A step takes a byte per seven bits; consecutive steps of the same size are encoded together.
    sizes = np.maximum(1, -(-_bits(steps) // 7))
    cuts = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(steps)]
    parts = []
    for cut, end in pairwise(cuts):
        for first in range(cut, end, _BATCH):
            rows = slice(first, min(first + _BATCH, end))
            parts.append(_framed(_events(tag, times[rows], steps[rows], values[rows], int(sizes[first]))))
    return b"".join(parts)


def _bits(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def _events(
    tag: str,
    times: npt.NDArray[np.float64],
    steps: npt.NDArray[np.int64],
    values: npt.NDArray[np.float32],
    size: int,
) -> Rows:
    """Encode events whose steps take ``size`` bytes each."""
    named = text_field(_TAG, tag) + _FLOAT_KEY
    value = length_prefix(_VALUE, len(named) + 4) + named
    lead = length_prefix(_SUMMARY, len(value) + 4) + value
    digits = steps[:, None] >> 7 * np.arange(size) & 0x7F
    digits[:, :-1] |= 0x80
    count = len(steps)
    return np.concatenate(
        [
            _same(bytes([_WALL_TIME << 3 | 1]), count),
            times.astype("<f8")[:, None].view(np.uint8),
            _same(bytes([_STEP << 3]), count),
            digits.astype(np.uint8),
            _same(lead, count),
            values.astype("<f4")[:, None].view(np.uint8),
        ],
        axis=1,
    )


def _framed(rows: Rows) -> bytes:
    count, length = rows.shape
    head = _same(struct.pack("<Q", length), 1)
    frame = np.concatenate([head, _bytes(checksums_of_rows(head))], axis=1)
    return np.concatenate(
        [np.broadcast_to(frame, (count, frame.shape[1])), rows, _bytes(checksums_of_rows(rows))], axis=1
    ).tobytes()


def _record(message: bytes) -> bytes:
    head = struct.pack("<Q", len(message))
    return head + checksum(head) + message + checksum(message)


def _same(data: bytes, count: int) -> Rows:
    return np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))


def _bytes(numbers: npt.NDArray[np.uint32]) -> Rows:
    return numbers.astype("<u4")[:, None].view(np.uint8)
