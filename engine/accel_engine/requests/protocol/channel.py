"""Sends frozen dataclasses through a pipe and makes them again at its other end: the framing, and the one decoder.

A message is a line with a JSON object: the name of its type, its fields, and a number that tells conversations apart.
Python's JSON has NaN, infinities and texts that are not Unicode, such as names of files.
"""

import json
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol, get_origin

from accel_engine.errors import AccelError
from accel_engine.requests.protocol.request import Problem


class ProtocolError(ValueError):
    """A line is not a message, or not one of this version of the program."""


class ByteSource(Protocol):
    """The incoming lines of a channel."""

    def readline(self) -> str:
        """The next line; one without its end when no more will come."""

    def close(self) -> None:
        """Take nothing more."""


class Sink(Protocol):
    """The outgoing lines of a channel."""

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""

    def write(self, text: str, /) -> object:
        """Send a text, at the latest with the next :meth:`flush`."""

    def flush(self) -> object:
        """Send all."""

    def close(self) -> None:
        """Send nothing more."""


class Channel:
    """The end of two pipes, one for each direction.

    Args:
        source: What comes.
        sink: What goes; any thread may send.

    Attributes:
        folder: Where arrays are passed on as files, as they may be larger than memory has room for twice; ``None`` if
            there are none.
    """

    def __init__(self, source: ByteSource, sink: Sink) -> None:
        self._source, self._sink = source, sink
        self._sending = threading.Lock()
        self._numbers = count()
        self.folder: Path | None = None

    def send(self, message: Any, number: int = 0) -> None:
        """Send a frozen dataclass.

        Raises:
            OSError: Nobody is at the other end.
            TypeError: The message has a value that none can have.
        """
        from msgspec import to_builtins  # as in receive()

        fields = to_builtins(message, str_keys=True, enc_hook=self._plain)
        line = json.dumps({"kind": type(message).__name__, "fields": fields, "number": number})
        with self._sending:
            if self._sink.closed:
                raise BrokenPipeError("closed")
            self._sink.write(line + "\n")
            self._sink.flush()

    def receive(self, *kinds: type) -> tuple[Any, int] | None:
        """Wait for the next message.

        Args:
            kinds: The types that it may have, whose names differ.

        Returns:
            The message and its number; ``None`` when no more will come. A message with a plan that is invalid here,
            for example because its data is gone, becomes a :class:`Problem`.

        Raises:
            ProtocolError: The line is not a message of these types.
        """
        from accel_engine.json_values import convert  # the first screen is painted without msgspec

        try:
            line = self._source.readline()
            if not line.endswith("\n"):
                return None  # the other process has ended, maybe while it wrote
            message = json.loads(line)
            (kind,), number = [each for each in kinds if each.__name__ == message["kind"]], int(message["number"])
            try:
                return convert(message["fields"], kind, self._made), number
            except AccelError as error:
                return Problem(str(error)), number
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise ProtocolError(f"{type(error).__name__}: {error}") from error

    def stop_sending(self) -> None:
        """Close the pipe to the other end, which then receives nothing more."""
        with self._sending, suppress(OSError):
            self._sink.close()

    def close(self) -> None:
        """Close both pipes; not while a thread waits for a message."""
        self.stop_sending()
        self._source.close()

    def _plain(self, value: Any) -> Any:
        """A value that is not a dataclass as one of JSON; of NumPy's, only where a function has imported it."""
        if isinstance(value, Path):
            return str(value)
        numpy = sys.modules.get("numpy")
        if numpy and isinstance(value, numpy.generic):
            return value.item()
        if numpy and isinstance(value, numpy.ndarray) and self.folder:
            name = f"array-{next(self._numbers)}.npy"
            numpy.save(self.folder / name, value, allow_pickle=False)
            return name
        raise TypeError(f"a message cannot have a {type(value).__name__}")

    def _made(self, kind: Any, value: Any) -> Any:
        if not isinstance(value, str):
            raise TypeError(f"it is no {kind}")
        if kind is Path:
            return Path(value)
        import numpy  # slow to import, and nothing else is made of a text

        if get_origin(kind) is not numpy.ndarray or not self.folder:
            raise TypeError(f"it is no {kind}")
        return numpy.load(self.folder / Path(value).name, allow_pickle=False)
