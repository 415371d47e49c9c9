"""Reads the size and channels of an image file from its header."""

import struct
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from accel_engine.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")
"""Suffixes of image files."""


class ImageHeader(NamedTuple):
    """Height and width in pixels, and channels: 1 for grey, 3 for colour."""

    height: int
    width: int
    channels: int


def read_header(path: Path) -> ImageHeader:
    """Read an image's header.

    Raises:
        DataError: The file cannot be read, or is not one of these formats.
    """
    try:
        with path.open("rb") as file:
            header = _parse(file)
    except OSError as error:
        raise DataError(f"cannot read the image {path}: {error.strerror or error}") from error
    except (struct.error, IndexError):
        header = None
    if header is None or 0 in header:
        raise DataError(f"cannot read the image {path}: not a valid PNG, JPEG, GIF or BMP file")
    return header


def parse_header(content: bytes) -> ImageHeader | None:
    """The header of an image in memory; ``None`` if it is not one of these formats."""
    try:
        header = _parse(BytesIO(content))
    except (struct.error, IndexError):
        return None
    return None if header is None or 0 in header else header


def _parse(file: BinaryIO) -> ImageHeader | None:
    start = file.read(32)
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack(">II", start[16:24])
        return ImageHeader(height, width, 1 if start[25] in (0, 4) else 3)  # colour types: grey, grey with alpha
    if start.startswith((b"GIF87a", b"GIF89a")):
        width, height = struct.unpack("<HH", start[6:10])
        return ImageHeader(height, width, 3)
    if start.startswith(b"BM"):
        width, height = struct.unpack("<ii", start[18:26])
        return ImageHeader(abs(height), width, 3)  # a negative height means rows from the top
    if start.startswith(b"\xff\xd8"):
        file.seek(2)
        return _parse_jpeg(file)
    return None


def _parse_jpeg(file: BinaryIO) -> ImageHeader | None:
    """Skip segments up to the start of a frame (ITU-T T.81, annex B)."""
    while True:
        marker = file.read(2)
        if len(marker) < 2 or marker[0] != 0xFF:
            return None
        while marker[1] == 0xFF:  # fill bytes
            marker = b"\xff" + file.read(1)
        if marker[1] in (0x01, *range(0xD0, 0xD8)):  # segments without a length
            continue
        (length,) = struct.unpack(">H", file.read(2))
        if 0xC0 <= marker[1] <= 0xCF and marker[1] not in (0xC4, 0xC8, 0xCC):
            _, height, width, components = struct.unpack(">BHHB", file.read(6))
            return ImageHeader(height, width, 1 if components == 1 else 3)
        file.seek(length - 2, 1)
