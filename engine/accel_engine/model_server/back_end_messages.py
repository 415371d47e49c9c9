"""Messages between the front end and the back end through a socket: a head of MessagePack, and raw arrays."""

import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from accel_engine.inference.runtime import Arrays

SMALL = 1 << 16
"""A message of at most this many bytes is copied, and sent at once."""

LENGTHS = struct.Struct("<IQ")
"""Bytes of the head and of the body."""


def packed(head: Mapping[str, Any], arrays: Arrays | None = None) -> Iterator[bytes | memoryview]:
    """The parts of a message.

    Args:
        head: Plain values.
        arrays: Numbers and texts.
    """
    specs, parts, size = list[tuple[Any, ...]](), list[memoryview](), 0
    for name, array in (arrays or {}).items():
        if array.dtype.kind in "OUS":
            specs.append((name, "string", array.shape, array.reshape(-1).tolist()))
            continue
        array = np.ascontiguousarray(array)
        specs.append((name, array.dtype.str, array.shape, array.nbytes))
        if array.nbytes:
            parts.append(array.reshape(-1).view(np.uint8).data)
        size += array.nbytes
    encoded = msgspec.msgpack.encode({**head, "arrays": specs})
    yield LENGTHS.pack(len(encoded), size)
    yield encoded
    yield from parts


def unpacked(head: bytes, body: bytes | memoryview) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The plain values and the arrays of a message; texts are objects."""
    values = msgspec.msgpack.decode(head)
    arrays, start = dict[str, npt.NDArray[Any]](), 0
    for name, dtype, shape, content in values.pop("arrays"):
        if dtype == "string":
            array = np.empty(len(content), object)
            array[:] = content
        else:
            array = np.frombuffer(body, dtype, int(np.prod(shape)), start)
            start += content
        arrays[name] = array.reshape(shape)
    return values, arrays


def send(link: socket.socket, head: Mapping[str, Any], arrays: Arrays | None = None) -> None:
    """Send a message; a small one at once, so that the other end wakes up once.

    Raises:
        OSError: The other end is gone.
    """
    parts = list(packed(head, arrays))
    if sum(map(len, parts)) <= SMALL:
        parts = [b"".join(parts)]
    for part in parts:
        link.sendall(part)


def receive(link: socket.socket) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
    """Wait for a message; ``None`` if the other end is gone."""
    lengths = _exactly(link, LENGTHS.size)
    if lengths is None:
        return None
    head_size, body_size = LENGTHS.unpack(lengths)
    content = _exactly(link, head_size + body_size)
    return None if content is None else unpacked(bytes(content[:head_size]), memoryview(content)[head_size:])


def _exactly(link: socket.socket, size: int) -> bytearray | None:
    content = bytearray(size)
    rest = memoryview(content)
    while len(rest):
        try:
            count = link.recv_into(rest)
        except OSError:
            return None
        if not count:
            return None
        rest = rest[count:]
    return content
