"""PNG files against Pillow's, and files that are damaged or hostile."""

import io
import random
import struct
import tracemalloc
import zlib
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image as Picture

from accel_engine import png

MODES = {"L": 0, "RGB": 2, "P": 3, "LA": 4, "RGBA": 6}
LIMIT = 1 << 20


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def file(header: tuple[int, ...], rows: bytes, *others: bytes) -> bytes:
    """A PNG file of width, height, bits, colour type, compression, filter method and interlace method."""
    first = chunk(b"IHDR", struct.pack(">IIBBBBB", *header))
    data = zlib.compress(rows)
    halves = chunk(b"IDAT", data[: len(data) // 2]) + chunk(b"IDAT", data[len(data) // 2 :])
    return b"\x89PNG\r\n\x1a\n" + first + b"".join(others) + halves + chunk(b"IEND", b"")


def random_file(mode: str, height: int, width: int) -> bytes:
    """Random rows with random filters."""
    chance = random.Random(f"{mode} {height} {width}")
    length = width * {"L": 1, "P": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode]
    rows = b"".join(bytes([chance.randrange(5)]) + chance.randbytes(length) for _ in range(height))
    palette = [chunk(b"PLTE", chance.randbytes(3 * 256))] if mode == "P" else []
    return file((width, height, 8, MODES[mode], 0, 0, 0), rows, *palette)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (5, 9), (40, 23)])
def test_every_filter_is_undone_as_pillow_does(mode: str, size: tuple[int, int]) -> None:
    data = random_file(mode, *size)
    found = png.decode_pixels(data, LIMIT)
    expected = np.asarray(Picture.open(io.BytesIO(data)).convert({"P": "RGB", "LA": "RGBA"}.get(mode, mode)))
    np.testing.assert_array_equal(found, expected.reshape(found.shape))


def test_opacity_of_a_palette() -> None:
    palette = chunk(b"PLTE", bytes(range(9))) + chunk(b"tRNS", b"\x80")
    found = png.decode_pixels(file((3, 1, 8, 3, 0, 0, 0), b"\0\0\1\2", palette), LIMIT)
    assert found.tolist() == [[[0, 1, 2, 128], [3, 4, 5, 255], [6, 7, 8, 255]]]


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_encoded_is_decoded(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 31, channels), np.uint8)
    np.testing.assert_array_equal(png.decode_pixels(png.encode_pixels(pixels), LIMIT), pixels)


def other(form: str) -> bytes:
    stream = io.BytesIO()
    Picture.new("L", (3, 2)).save(stream, form)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (other("JPEG"), "JPEG"),
        (other("GIF"), "GIF"),
        (b"", "not PNG"),
        (b"\x89PNG", "damaged PNG"),
        (file((2, 1, 16, 0, 0, 0, 0), bytes(5)), "PNG of 16 bits per channel"),
        (file((2, 1, 8, 0, 0, 0, 1), bytes(3)), "interlaced PNG"),
        (file((2, 1, 8, 0, 0, 0, 0), bytes(3), chunk(b"tRNS", bytes(2))), "PNG with a transparent colour"),
        (file((2, 1, 8, 5, 0, 0, 0), bytes(3)), "damaged PNG"),
        (file((0, 1, 8, 0, 0, 0, 0), b""), "damaged PNG"),
        (file((2, 1, 8, 0, 0, 0, 0), bytes(2)), "damaged PNG"),
        (file((2, 1, 8, 0, 0, 0, 0), bytes(4)), "damaged PNG"),
        (file((2, 1, 8, 0, 0, 0, 0), b"\5\0\0"), "damaged PNG"),
        (file((2, 1, 8, 3, 0, 0, 0), b"\0\0\1", chunk(b"PLTE", bytes(3))), "damaged PNG"),
        (file((2, 1, 8, 3, 0, 0, 0), bytes(3)), "damaged PNG"),
        (random_file("L", 3, 3)[:-1], "damaged PNG"),
        (random_file("L", 3, 3).replace(b"IDAT", b"IDAU"), "damaged PNG"),
        (file((2, 1, 8, 0, 0, 0, 0), bytes(3)).replace(chunk(b"IEND", b""), b""), "damaged PNG"),
        (file((1, 1 << 15, 8, 0, 0, 0, 0), b"\1\0" * (1 << 15)), "filtered PNG with sides of more than 16,384 pixels"),
    ],
)
def test_what_is_not_read_has_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        png.decode_pixels(data, LIMIT)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ((1 << 31, 1 << 31, 8, 6, 0, 0, 0), "PNG with too many pixels"),
        ((1025, 1024, 8, 0, 0, 0, 0), "PNG with too many pixels"),
        ((600, 600, 8, 4, 0, 0, 0), "PNG with too many pixels"),
        ((1, 1, 8, 0, 0, 0, 0), "damaged PNG"),
    ],
)
def test_memory_is_bounded_whatever_a_file_says(header: tuple[int, ...], reason: str) -> None:
    data = file(header, bytes(100 << 20))  # 100 MiB of zeros are 100 KiB
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=reason):
            png.decode_pixels(data, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 4 * LIMIT
    finally:
        tracemalloc.stop()


def test_any_damage_is_an_error_or_an_image() -> None:
    chance = random.Random(0)
    for mode in MODES:
        intact = random_file(mode, 6, 5)
        for _ in range(300):
            data = bytearray(intact[: chance.choice((len(intact), chance.randrange(len(intact) + 1)))])
            for _ in range(chance.randrange(4)):
                if data:
                    data[chance.randrange(len(data))] = chance.randrange(256)
            if chance.random() < 0.5:
                data = bytearray(with_right_checksums(bytes(data)))
            with suppress(ValueError):
                assert png.decode_pixels(bytes(data), LIMIT).nbytes <= LIMIT


def with_right_checksums(data: bytes) -> bytes:
    """A file whose chunks have the right checksums, so that damage is not found by them."""
    parts, at = [data[:8]], 8
    while at + 12 <= len(data):
        length = min(int.from_bytes(data[at : at + 4], "big"), len(data) - at - 12)
        parts.append(chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    return b"".join(parts)
