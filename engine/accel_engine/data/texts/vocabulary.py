"""The text of tokens."""

UNKNOWN = "\ufffd"
"""The text of the token of characters that are not in the training part."""

BYTES = tuple(chr(byte) if byte < 0x80 else f"<0x{byte:02X}>" for byte in range(256))
"""The text of each byte."""
