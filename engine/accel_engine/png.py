"""Reads and writes PNG images of 8 bits per channel.

Source: RFC 2083.
"""

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
"""Shape ``[height, width, channels]``."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">IIBBBBB")
_LENGTH = struct.Struct(">I")
_GRAY, _COLOUR, _PALETTE, _GRAY_WITH_OPACITY, _COLOUR_WITH_OPACITY = 0, 2, 3, 4, 6  # colour types
_CHANNELS = {_GRAY: 1, _COLOUR: 3, _PALETTE: 1, _GRAY_WITH_OPACITY: 2, _COLOUR_WITH_OPACITY: 4}
_PAETH = 4  # the last filter
_NOTHING = np.zeros(1, np.int16)

_MAX_SIDE = 1 << 14
"""Longest side of a filtered image: its pixels are computed a diagonal at a time."""


def encode_pixels(pixels: Pixels) -> bytes:
    """Encode gray (1 channel) or coloured pixels (3 channels)."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each begins with its filter: none
    header = _HEADER.pack(width, height, 8, _GRAY if channels == 1 else _COLOUR, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def decode_pixels(data: bytes, max_bytes: int) -> Pixels:
    """Decode an image.

    Args:
        data: The file.
        max_bytes: Most bytes of its pixels. The memory it takes is a small multiple of this, whatever the file says.

    Returns:
        Pixels with 1 channel (gray), 3 (colours) or 4 (with opacity).

    Raises:
        ValueError: It is damaged, too large, or not such an image. The message is a noun phrase for what it is, the
            same for all images of its kind.
    """
    if not data.startswith(_SIGNATURE):
        raise ValueError(_other_format(data))
    parts: dict[bytes, list[bytes]] = {}
    for kind, content in _chunks(data):
        parts.setdefault(kind, []).append(content)
    if [len(header) for header in parts.get(b"IHDR", ())] != [_HEADER.size]:
        raise _damaged()
    width, height, bits, colour, compression, filtering, interlaced = _HEADER.unpack(parts[b"IHDR"][0])
    if not width or not height or colour not in _CHANNELS or compression or filtering:
        raise _damaged()
    if bits != 8 or interlaced:
        raise ValueError("interlaced PNG" if interlaced else f"PNG of {bits} bits per channel")
    transparent = b"".join(parts.get(b"tRNS", ()))
    if transparent and colour in {_GRAY, _COLOUR}:
        raise ValueError("PNG with a transparent colour")
    channels = _CHANNELS[colour]
    result_channels = {1: 1, 2: 4, 3: 3, 4: 4}[channels] if colour != _PALETTE else 3 + bool(transparent)
    if width * height * result_channels > max_bytes:
        raise ValueError("PNG with too many pixels")
    rows = _decompressed(parts.get(b"IDAT", []), height * (1 + width * channels)).reshape(height, 1 + width * channels)
    filters = rows[:, 0].astype(np.uint8)
    values = rows[:, 1:].reshape(height, width, channels)
    if filters.any():
        values = values.copy()
        _unfilter(values, filters)
    if colour == _PALETTE:
        return _coloured(values[..., 0], b"".join(parts.get(b"PLTE", ())), transparent)
    return values[..., [0, 0, 0, 1]] if colour == _GRAY_WITH_OPACITY else values


def _chunk(kind: bytes, data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + kind + data + _LENGTH.pack(zlib.crc32(kind + data))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of each chunk up to the end of the image."""
    at = len(_SIGNATURE)
    while len(data) - at >= 12:
        end = at + 8 + _LENGTH.unpack_from(data, at)[0]
        kind, content = data[at + 4 : at + 8], data[at + 8 : end]
        if end + 4 > len(data) or _LENGTH.unpack_from(data, end)[0] != zlib.crc32(content, zlib.crc32(kind)):
            break
        if kind == b"IEND":
            return
        yield kind, content
        at = end + 4
    raise _damaged()


def _decompressed(parts: list[bytes], size: int) -> Pixels:
    """The rows, each with its filter, ``[size]``."""
    try:
        data = zlib.decompressobj().decompress(b"".join(parts), size + 1)
    except zlib.error as error:
        raise _damaged() from error
    if len(data) != size:
        raise _damaged()
    return np.frombuffer(data, np.uint8)


def _unfilter(values: Pixels, filters: npt.NDArray[np.uint8]) -> None:
    """Replace the differences by the values, in place.

    A value depends on those to its left, above and above left. A diagonal, from the lower left to the upper right,
    depends on the two before it only: NumPy computes all of it at once.

    Args:
        values: ``[height, width, channels]``.
        filters: The filter of each row, ``[height]``.
    """
    height, width, channels = values.shape
    if max(height, width) > _MAX_SIDE:
        raise ValueError(f"filtered PNG with sides of more than {_MAX_SIDE:,} pixels")
    if filters.max() > _PAETH:
        raise _damaged()
    # The last two diagonals by row, after a row of zeros for what is above the image.
    last, before = np.zeros((2, height + 1, channels), np.int16)
    flat, apart = values.reshape(-1, channels), max(width - 1, 1)  # pixels between those of a diagonal
    by_row = filters.astype(np.intp)[:, None]
    for diagonal in range(height + width - 1):
        low, high = max(0, diagonal - width + 1), min(height, diagonal + 1)
        first = low * width + diagonal - low
        pixels = flat[first : first + (high - low - 1) * apart + 1 : apart]
        left, above, corner = last[low + 1 : high + 1], last[low:high], before[low:high]
        across, down = left - corner, above - corner  # from the corner
        from_left, from_above, from_corner = np.abs(down), np.abs(across), np.abs(across + down)
        nearest = np.where(from_above <= from_corner, above, corner)
        nearest = np.where(from_left <= np.minimum(from_above, from_corner), left, nearest)
        candidates = (_NOTHING, left, above, (left + above) >> 1, nearest)
        pixels += by_row[low:high].choose(candidates).astype(np.uint8)  # modulo 256
        before, last = last, before
        last[low + 1 : high + 1] = pixels


def _coloured(indices: npt.NDArray[np.uint8], palette: bytes, opacity: bytes) -> Pixels:
    """The colours that indices ``[height, width]`` refer to, with opacity if there is any."""
    count = len(palette) // 3
    if len(palette) % 3 or not count or len(opacity) > count or indices.max() >= count:
        raise _damaged()
    colours = np.frombuffer(palette, np.uint8).reshape(count, 3)
    if opacity:
        column = np.frombuffer(opacity.ljust(count, b"\xff"), np.uint8)[:, None]
        colours = np.concatenate([colours, column], axis=1)
    return colours[indices]


def _other_format(data: bytes) -> str:
    formats = {b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"RIFF": "WebP", b"BM": "BMP", b"\x89PNG": "damaged PNG"}
    return next((name for start, name in formats.items() if data.startswith(start)), "not PNG")


def _damaged() -> ValueError:
    return ValueError("damaged PNG")
