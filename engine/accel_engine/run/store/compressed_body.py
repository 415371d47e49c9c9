"""Decompresses the body of a row, which may be damaged or hostile."""

import zlib


def decompressed(body: bytes, size: int) -> bytes:
    """Decompress bytes with zlib, in no more memory than they should take.

    Raises:
        ValueError: The body is damaged, is not bytes, or has another size.
    """
    try:
        data = zlib.decompressobj().decompress(body, size + 1)
    except (TypeError, zlib.error) as error:
        raise ValueError(f"its body is damaged: {error}") from error
    if len(data) != size:
        raise ValueError(f"its body has another size than {size} bytes")
    return data
