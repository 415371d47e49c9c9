"""Reads the size and channels of an image file from its header."""

import re
import struct
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from accel_engine.errors import DataError, UnreadableError
from accel_engine.files import regular

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")
"""Suffixes of image files."""

MAX_BYTES = 1 << 29
"""Size of a decoded image, in three channels: 178,956,970 pixels. A file of some kilobytes may claim any size."""

_ENDS = {b"\x89": b"IEND\xaeB`\x82", b"\xff": b"\xff\xd9", b"G": b";"}
"""How a PNG, JPEG and GIF file ends, by its first byte."""

_TAIL, _FILLING = 64, b"\0\r\n"
"""Bytes at the end of a file that are looked at, and those that other programs append."""

_SEARCHED = 1 << 25
"""Bytes of a JPEG file in which its end is searched if it is not at the end of the file."""

_MARKER = re.compile(rb"\xff+([^\x00\x01\xd0-\xd7\xff])")
"""A marker of a JPEG file, but those within the data of a scan."""


class ImageHeader(NamedTuple):
    """Height and width in pixels, and channels: 1 for grey, 3 for colour."""

    height: int
    width: int
    channels: int


def read_header(path: Path) -> ImageHeader:
    """Read an image's header.

    Raises:
        UnreadableError: The file cannot be read, is cut, or is not one of these formats.
        DataError: The image is too large.
    """
    return _read(path)[0]


def is_whole_image(path: Path) -> bool:
    """Whether an image's header and end are there: of a file that was cut, they are not.

    Raises:
        UnreadableError: The header cannot be read.
        DataError: The image is too large.
    """
    return _read(path)[1]


def _read(path: Path) -> tuple[ImageHeader, bool]:
    try:
        with regular(path).open("rb") as file:
            header = _parse(file)
            whole = header is not None and _has_end(file)
    except OSError as error:
        raise UnreadableError(f"cannot read the image {path}: {error.strerror or error}") from error
    except (struct.error, IndexError):
        header = None
    if header is None or min(header) <= 0:
        raise UnreadableError(f"cannot read the image {path}: not a valid PNG, JPEG, GIF or BMP file")
    if 3 * header.height * header.width > MAX_BYTES:
        size = f"{header.width:,} x {header.height:,} pixels are too many, at most {MAX_BYTES // 3:,} are read"
        kind = DataError if whole else UnreadableError  # a damaged header may claim any size
        raise kind(f"cannot read the image {path}: {size}; make it smaller")
    return header, whole


def parse_header(content: bytes) -> ImageHeader | None:
    """The header of an image in memory; ``None`` if it is not one of these formats."""
    try:
        header = _parse(BytesIO(content))
    except (struct.error, IndexError):
        return None
    return None if header is None or min(header) <= 0 else header


def _has_end(file: BinaryIO) -> bool:
    """Whether a file is as long as it says, or ends with the mark of its format."""
    file.seek(0)
    start = file.read(6)
    size = file.seek(0, SEEK_END)
    if start.startswith(b"BM"):
        return size >= int(struct.unpack("<I", start[2:])[0])
    file.seek(max(size - _TAIL, 0))
    if file.read().rstrip(_FILLING).endswith(_ENDS[start[:1]]):
        return True
    file.seek(0)
    return start.startswith(b"\xff\xd8") and _has_end_marker(file.read(_SEARCHED))


def _has_end_marker(jpeg: bytes) -> bool:
    """Whether the segments of a JPEG file lead to the end marker; phones append depth maps and films to it."""
    at = 2
    while marker := _MARKER.search(jpeg, at):
        if marker[1] == b"\xd9":
            return True
        at = marker.end() + int.from_bytes(jpeg[marker.end() : marker.end() + 2], "big")
    return False


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
