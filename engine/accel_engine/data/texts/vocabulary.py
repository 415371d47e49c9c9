"""The text of tokens, and text from tokens."""

from collections.abc import Iterable, Sequence

UNKNOWN = "\ufffd"
"""The text of the token of characters that are not in the training part."""

BYTES = tuple(chr(byte) if byte < 0x80 else f"<0x{byte:02X}>" for byte in range(256))
"""The text of each byte."""


def decode(tokens: Iterable[int], vocabulary: Sequence[str]) -> str:
    """Join tokens to a text, which may have any characters. Bytes that are not UTF-8 become :data:`UNKNOWN`."""
    if tuple(vocabulary) == BYTES:
        return bytes(tokens).decode("utf-8", "replace")
    return "".join(vocabulary[token] for token in tokens)
