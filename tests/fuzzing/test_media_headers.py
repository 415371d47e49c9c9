"""Images and sounds with any bytes: their headers are read within bounds, or refused with the reason."""

import struct
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from accel_engine.data.folders.sound_files import read_sound
from accel_engine.data.folders.sound_files import sound_header as read_sound_header
from accel_engine.errors import DataError
from accel_engine.image_files import MAX_PIXELS, check_image, parse_header, read_header, read_labels, read_pixels
from fuzzing.texts import edited

FORMS = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "GIF": ("P",),
    "WEBP": ("RGB", "RGBA"),
    "TIFF": ("1", "L", "P", "RGB", "CMYK", "I;16", "F"),
    "PPM": ("1", "L", "RGB", "I"),
    "BMP": ("L", "RGB"),
}


def encoded(form: str, mode: str) -> bytes:
    stream = BytesIO()
    options: dict[str, Any] = {"exif": ORIENTATION} if form in ("PNG", "JPEG", "WEBP", "TIFF") else {}
    if form == "GIF":
        options = {"save_all": True, "append_images": [Image.new(mode, (3, 2), 1)]}
    Image.new(mode, (3, 2)).save(stream, form, **options)
    return stream.getvalue()


EXIF = Image.Exif()
EXIF[0x0112] = 6
ORIENTATION = EXIF.tobytes()
IMAGES = [b"", *(encoded(form, mode) for form, modes in FORMS.items() for mode in modes)]
FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 800, 1600, 2, 16)
WAV = b"RIFF\x34\0\0\0WAVELIST\x03\0\0\0abc\0" + FORMAT + b"data\x10\0\0\0" + bytes(16)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # of Pillow
@given(st.sampled_from(IMAGES).flatmap(edited))
def test_images(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(content)
    parse_header(content)
    for read in (check_image, partial(read_pixels, shape=(4, 5, 3)), partial(read_labels, size=(4, 5))):
        with suppress(DataError):
            read(path)
    try:
        header = read_header(path)
    except DataError:
        return
    assert min(header[:4]) > 0
    assert header.height * header.width <= MAX_PIXELS


def sound(kind: str) -> bytes:
    """A tone of another format."""
    content = BytesIO()
    soundfile.write(content, np.sin(np.arange(300) / 5) / 2, 8000, format=kind)
    return content.getvalue()


@given(st.sampled_from([WAV, *map(sound, ("FLAC", "OGG", "MP3", "AIFF", "AU"))]).flatmap(edited))
def test_sounds(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(content)
    with suppress(DataError):
        header = read_sound_header(path)
        assert min(header) > 0
        samples, _ = read_sound(path, 100, 800)
        assert (samples.shape, samples.dtype) == ((100,), np.float32)
        assert np.isfinite(samples).all()
