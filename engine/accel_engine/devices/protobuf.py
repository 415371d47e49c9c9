"""Reads and writes simple messages in the Protocol Buffers wire format.

Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections import defaultdict

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
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

    def __init__(self, data: bytes = b"") -> None:
        self._integers: dict[int, int] = {}
        self._fixed: dict[int, bytes] = {}
        self._bytes: defaultdict[int, list[bytes]] = defaultdict(list)
        at = 0
        while at < len(data):
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            if not number:
                raise MalformedError("a field has no number")
            if kind == _VARINT:
                self._integers[number], at = _varint(data, at)
            elif kind == _FIXED64:
                self._fixed[number], at = _take(data, at, 8)
            elif kind == _FIXED32:
                _, at = _take(data, at, 4)
            elif kind == _BYTES:
                length, at = _varint(data, at)
                value, at = _take(data, at, length)
                self._bytes[number].append(value)
            else:
                raise MalformedError(f"a field is of the unknown type {kind}")

    def integer(self, number: int) -> int | None:
        """Return a field of type ``int64``; ``None`` if it is missing."""
        value = self._integers.get(number)
        return value - (1 << 64) if value is not None and value >= 1 << 63 else value

    def double(self, number: int) -> float | None:
        """Return a field of type ``double``; ``None`` if it is missing."""
        value = self._fixed.get(number)
        return None if value is None else float(struct.unpack("<d", value)[0])

    def message(self, number: int) -> "Message":
        """Return a message field; an empty message if it is missing."""
        return Message(self._bytes[number][-1]) if self._bytes.get(number) else Message()

    def messages(self, number: int) -> list["Message"]:
        """Return a repeated message field."""
        return [Message(data) for data in self._bytes.get(number, ())]


def text_field(number: int, text: str) -> bytes:
    """Encode a field of type ``string``."""
    return bytes_field(number, text.encode())


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
