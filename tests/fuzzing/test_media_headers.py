"""Images and sounds with any bytes: their headers are read within bounds, or refused with the reason."""

import struct
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from accel_engine.data.folders.image_header import MAX_BYTES, is_whole_image, parse_header, read_header
from accel_engine.data.folders.mask_classes import read_palette
from accel_engine.data.folders.wav_header import read_wav_header
from accel_engine.errors import DataError
from fuzzing.texts import edited

_IHDR = struct.pack(">4sIIBBBBB", b"IHDR", 3, 2, 8, 2, 0, 0, 0)
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + _IHDR + bytes(4) + b"\0\0\0\x06PLTE" + bytes(10)
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x11\x08\0\x02\0\x03\x03" + bytes(9) + b"\xff\xd9"
GIF = bytes.fromhex("47494638396103000200800000ff0000ffffff2c00000000030002000002028c0f003b")
BMP = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 3, 2, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(16)
FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 800, 1600, 2, 16)
WAV = b"RIFF\x34\0\0\0WAVELIST\x03\0\0\0abc\0" + FORMAT + b"data\x10\0\0\0" + bytes(16)


@given(st.sampled_from([PNG, JPEG, GIF, BMP, b""]).flatmap(edited))
def test_images(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(content)
    read_palette(path)
    parse_header(content)
    try:
        header = read_header(path)
    except DataError:
        return
    assert min(header) > 0
    assert 3 * header.height * header.width <= MAX_BYTES
    is_whole_image(path)


@given(edited(WAV))
def test_sounds(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(content)
    with suppress(DataError):
        header = read_wav_header(path)
        assert min(header.rate, header.channels) > 0
        assert 2 * header.channels * header.samples <= len(content)
