"""The two directions of a link: lines of text in a deflate stream, so that what resembles earlier lines is short."""

import zlib
from typing import IO

MAX_LINE = 1 << 27
"""Bytes of the longest message; more are not a message, whoever sends them."""

_BLOCK = 1 << 16


class CompressedSource:
    """Lines that come.

    Args:
        pipe: The compressed bytes, unbuffered.

    Attributes:
        size: Bytes that have come.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._decompress = zlib.decompressobj()
        self._rest = bytearray()
        self.size = 0

    def readline(self) -> str:
        """The next line; an empty one when no more will come.

        Raises:
            ValueError: The bytes are not from a :class:`CompressedSink`, or a line is too long.
        """
        seen = 0
        while (end := self._rest.find(b"\n", seen)) < 0:
            seen = len(self._rest)
            if seen > MAX_LINE:
                raise ValueError(f"a message of more than {MAX_LINE:,} bytes")
            data = self._pipe.read(_BLOCK)
            if not data:
                return ""
            self.size += len(data)
            try:
                self._rest += self._decompress.decompress(data, MAX_LINE)
                while self._decompress.unconsumed_tail:
                    self._rest += self._decompress.decompress(self._decompress.unconsumed_tail, MAX_LINE)
                    if len(self._rest) > 2 * MAX_LINE:
                        raise ValueError(f"a message of more than {MAX_LINE:,} bytes")
            except zlib.error as error:
                raise ValueError(str(error)) from error
        line = self._rest[: end + 1].decode()
        del self._rest[: end + 1]
        return line

    def close(self) -> None:
        """Take nothing more."""
        self._pipe.close()


class CompressedSink:
    """Lines that go.

    Args:
        pipe: Takes the compressed bytes.

    Attributes:
        size: Bytes that have gone.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._compress = zlib.compressobj()
        self.size = 0

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._pipe.closed

    def write(self, text: str, /) -> None:
        """Send a text, at the latest with the next :meth:`flush`."""
        self._put(self._compress.compress(text.encode()))

    def flush(self) -> None:
        """Send all."""
        self._put(self._compress.flush(zlib.Z_SYNC_FLUSH))
        self._pipe.flush()

    def close(self) -> None:
        """Send nothing more."""
        self._pipe.close()

    def _put(self, data: bytes) -> None:
        self.size += len(data)
        self._pipe.write(data)
