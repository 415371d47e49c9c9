"""Reads and writes simple messages in the Protocol Buffers wire format.

Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT_BYTES = 10


class MalformedError(ValueError):
    """The bytes are not a message."""


class Message:
    """A parsed message, with fields by number. A field of another type counts as missing.

    Args:
        data: The encoded message.

    Raises:
        MalformedError: ``data`` is not a message.
    """

    __slots__ = ("_fields",)

    def __init__(self, data: bytes = b"") -> None:
        self._fields: dict[int, Any] = {}  # by number and type
        at = 0
        while at < len(data):
            tag, at = _varint(data, at)
            kind = tag & 7
            if tag < 8:
                raise MalformedError("a field has no number")
            if kind == _BYTES:
                length, at = _varint(data, at)
                value, at = _take(data, at, length)
                self._fields.setdefault(tag, []).append(value)
            elif kind == _VARINT:
                self._fields[tag], at = _varint(data, at)
            elif kind in _SIZES:
                self._fields[tag], at = _take(data, at, _SIZES[kind])
            else:
                raise MalformedError(f"a field is of the unknown type {kind}")

    def integer(self, number: int) -> int | None:
        """Return a field of type ``int64``; ``None`` if it is missing."""
        value: int | None = self._fields.get(number << 3 | _VARINT)
        return value - (1 << 64) if value is not None and value >= 1 << 63 else value

    def integers(self, number: int) -> list[int]:
        """Return a packed repeated field of type ``int64``.

        Raises:
            MalformedError: The field ends within a number.
        """
        values = []
        for packed in self.data(number):
            at = 0
            while at < len(packed):
                value, at = _varint(packed, at)
                values.append(value - (1 << 64) if value >> 63 else value)
        return values

    def double(self, number: int) -> float | None:
        """Return a field of type ``double``; ``None`` if it is missing."""
        value = self._fields.get(number << 3 | _FIXED64)
        return None if value is None else float(struct.unpack("<d", value)[0])

    def single(self, number: int) -> float | None:
        """Return a field of type ``float``; ``None`` if it is missing."""
        value = self._fields.get(number << 3 | _FIXED32)
        return None if value is None else float(struct.unpack("<f", value)[0])

    def data(self, number: int) -> list[bytes]:
        """Return a repeated field of type ``bytes``."""
        return list(self._fields.get(number << 3 | _BYTES, ()))

    def text(self, number: int) -> str:
        """Return a field of type ``string``; empty if it is missing."""
        return b"".join(self.data(number)[-1:]).decode(errors="replace")

    def message(self, number: int) -> "Message":
        """Return a message field; an empty message if it is missing."""
        return Message(b"".join(self.data(number)[-1:]))

    def messages(self, number: int) -> "list[Message]":
        """Return a repeated message field."""
        return [Message(data) for data in self.data(number)]


def text_field(number: int, text: str) -> bytes:
    """Encode a field of type ``string``; lone surrogates, which UTF-8 does not have, are escaped."""
    return bytes_field(number, text.encode("utf-8", "backslashreplace"))


def bytes_field(number: int, data: bytes) -> bytes:
    """Encode a field of type ``bytes`` or a message field."""
    return length_prefix(number, len(data)) + data


def length_prefix(number: int, length: int) -> bytes:
    """Encode the tag and length of such a field."""
    return varint(number << 3 | _BYTES) + varint(length)


def integer_field(number: int, value: int) -> bytes:
    """Encode a non-negative field of type ``int64`` or of an enumeration."""
    return varint(number << 3 | _VARINT) + varint(value)


def double_field(number: int, value: float) -> bytes:
    """Encode a field of type ``double``."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def varint(value: int) -> bytes:
    """Encode a non-negative integer in seven bits per byte, the least significant first."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a varint; returns it with the offset of its end."""
    if at < len(data) and data[at] < 0x80:  # the usual case, and far faster
        return data[at], at + 1
    value = 0
    for index, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & (1 << 64) - 1, at + index + 1
    raise MalformedError("a varint does not end")


def _take(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise MalformedError("it ends in the middle of a field")
    return data[at : at + length], at + length
