"""Protocol Buffers' wire format, as far as it takes to say small things and to read the answers.

Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections import defaultdict

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class MalformedError(ValueError):
    """These bytes are no message."""


class Message:
    """A message's fields by number. What is not there, or of another type, is as if it were not set.

    Args:
        data: The message as it came.

    Raises:
        MalformedError: ``data`` is no message.
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
        """A field of type ``int64``."""
        value = self._integers.get(number)
        return value - (1 << 64) if value is not None and value >= 1 << 63 else value

    def double(self, number: int) -> float | None:
        """A field of type ``double``."""
        value = self._fixed.get(number)
        return None if value is None else float(struct.unpack("<d", value)[0])

    def message(self, number: int) -> "Message":
        """A field that is a message; an empty one where it is not set."""
        return Message(self._bytes[number][-1]) if self._bytes.get(number) else Message()

    def messages(self, number: int) -> list["Message"]:
        """A repeated field of messages."""
        return [Message(data) for data in self._bytes.get(number, ())]


def text_field(number: int, text: str) -> bytes:
    """A field of type ``string``, as it is sent."""
    return bytes_field(number, text.encode())


def bytes_field(number: int, data: bytes) -> bytes:
    """A field of type ``bytes``, or one that is a message, as it is sent."""
    return length_prefix(number, len(data)) + data


def length_prefix(number: int, length: int) -> bytes:
    """What comes before the bytes of such a field."""
    return varint(number << 3 | _BYTES) + varint(length)


def integer_field(number: int, value: int) -> bytes:
    """A field of type ``int64`` or of an enumeration, not negative, as it is sent."""
    return varint(number << 3 | _VARINT) + varint(value)


def double_field(number: int, value: float) -> bytes:
    """A field of type ``double``, as it is sent."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def varint(value: int) -> bytes:
    """A number, not negative, of seven bits a byte, the least significant first."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & (1 << 64) - 1, at + index + 1
    raise MalformedError("a number does not end")


def _take(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise MalformedError("it ends in the middle of a field")
    return data[at : at + length], at + length
