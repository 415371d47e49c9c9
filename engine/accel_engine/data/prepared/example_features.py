"""Parses a serialized ``tf.train.Example`` without TensorFlow, to show what a record holds.

Its fields and their numbers are those of ``example.proto`` and ``feature.proto`` of TensorFlow; the encoding is that of
https://protobuf.dev/programming-guides/encoding/.
"""

import struct
from collections.abc import Iterator
from typing import Any

_TYPES = {1: "string", 2: "float32", 3: "int64"}
"""The type of a feature by its field number."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""How values are encoded."""


def parse_example(content: bytes) -> dict[str, tuple[str, list[Any]]] | None:
    """The type and values of each feature, sorted by name; ``None`` if this is not an ``Example``."""
    features: dict[str, tuple[str, list[Any]]] = {}
    try:
        for _, message in _fields(content, {1}):
            for _, entry in _fields(message, {1}):
                parts = dict(_fields(entry, {1, 2}))
                features[parts[1].decode()] = _feature(parts.get(2, b""))
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error):
        return None
    return dict(sorted(features.items())) or None


def _feature(content: bytes) -> tuple[str, list[Any]]:
    for number, message in _fields(content, {1, 2, 3}):
        values: list[Any] = []
        for _, value in _fields(message, {1}):
            if number == 1:
                values.append(value)
            elif number == 2:
                values.extend(struct.unpack(f"<{len(value) // 4}f", value))
            elif isinstance(value, int):
                values.append(_signed(value))
            else:
                values.extend(map(_signed, _varints(value)))
        return _TYPES[number], values
    return "string", []


def _fields(content: Any, known: set[int]) -> Iterator[tuple[int, Any]]:
    """Yield the number and value of each field of a message."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, encoding = key >> 3, key & 7
        if number not in known:
            raise ValueError("not this message")
        if encoding == _VARINT:
            value, at = _varint(content, at)
            yield number, value
            continue
        if encoding == _BYTES:
            size, at = _varint(content, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}[encoding]
        if at + size > len(content):
            raise ValueError("not complete")
        yield number, content[at : at + size]
        at += size


def _varints(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield value


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
