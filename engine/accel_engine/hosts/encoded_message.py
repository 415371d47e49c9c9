"""Messages of engine processes as texts that cross a link, with the files of their arrays."""

import io
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from accel_engine.errors import RunError
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.words import numbers

MAX_ARRAYS = 64 << 20
"""Bytes of the arrays of a message that cross a link at most."""


def to_text(message: Any) -> tuple[str, Mapping[str, bytes]]:
    """A message as a line, and its arrays by name.

    Raises:
        RunError: The arrays are too large.
    """
    sink = io.StringIO()
    channel = Channel(io.StringIO(), sink)
    with TemporaryDirectory(prefix="accel-tui-") as folder:
        channel.folder = Path(folder)
        channel.send(message)
        files = sorted(Path(folder).iterdir())
        if (size := sum(file.stat().st_size for file in files)) > MAX_ARRAYS:
            raise RunError(
                f"the answer has {numbers.size(size)}, and at most {numbers.size(MAX_ARRAYS)} come from a host: "
                "ask for less, or bring the run here with accel-tui fetch"
            )
        return sink.getvalue(), {file.name: file.read_bytes() for file in files}


def from_text(line: str, arrays: Mapping[str, bytes], *kinds: type) -> Any:
    """The message of a line.

    Raises:
        RunError: The line is cut off, or is not a message of these types.
    """
    channel = Channel(io.StringIO(line), io.StringIO())
    with TemporaryDirectory(prefix="accel-tui-") as folder:
        channel.folder = Path(folder)
        for name, data in arrays.items():
            Path(folder, Path(name).name).write_bytes(data)
        try:
            received = channel.receive(*kinds)
        except ProtocolError as error:
            raise RunError(f"a message that this version does not understand: {error}") from error
    if received is None:
        raise RunError("a message that is cut off")
    return received[0]
