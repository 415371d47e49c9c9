"""Reads the format of a WAV file from its header."""

import os
import struct
from io import SEEK_CUR
from pathlib import Path
from typing import BinaryIO, NamedTuple

from accel_engine.errors import DataError, UnreadableError
from accel_engine.files import regular

_PCM = 1
_FORMAT = 40
"""Bytes that the description of a format has at most."""

_EXTENSIBLE = 0xFFFE
_FORMATS = {3: "floating point", 6: "A-law", 7: "µ-law"}


class WavHeader(NamedTuple):
    """Samples per second, number of channels, and samples of each channel."""

    rate: int
    channels: int
    samples: int


def read_wav_header(path: Path) -> WavHeader:
    """Read the header of a file with 16-bit PCM.

    Raises:
        UnreadableError: The file cannot be read, or is cut.
        DataError: It has another format.
    """
    try:
        with regular(path).open("rb") as file:
            header = _parse(file)
    except OSError as error:
        raise UnreadableError(f"cannot read the sound {path}: {error.strerror or error}") from error
    except struct.error:
        header = None
    except DataError as error:
        raise type(error)(f"cannot read the sound {path}: {error}") from None
    if header is None:
        raise UnreadableError(f"cannot read the sound {path}: not a valid WAV file")
    return header


def _parse(file: BinaryIO) -> WavHeader | None:
    """Walk through the chunks of a RIFF file up to its samples."""
    start = file.read(12)
    if not (start.startswith(b"RIFF") and start.endswith(b"WAVE")):
        return None
    rate = channels = bits = 0
    while len(head := file.read(8)) == 8:
        name, length = head[:4], struct.unpack("<I", head[4:])[0]
        if name == b"fmt ":
            content = file.read(min(length, _FORMAT))
            file.seek(length + length % 2 - len(content), SEEK_CUR)
            code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", content[:16])
            if code == _EXTENSIBLE:  # the real format follows
                (code,) = struct.unpack("<H", content[24:26])
            if code != _PCM or bits != 16:
                found = f"{bits}-bit {_FORMATS.get(code, 'PCM' if code == _PCM else f'format {code}')}"
                raise DataError(
                    f"it has {found}, but only 16-bit PCM can be read; convert it, e.g. with ffmpeg -i IN.wav "
                    "-c:a pcm_s16le OUT.wav"
                )
        elif name == b"data":
            left = os.fstat(file.fileno()).st_size - file.tell()
            if length > left:
                raise UnreadableError(f"it ends too early, with {left:,} of {length:,} bytes of samples")
            return WavHeader(rate, channels, length // (2 * channels)) if rate and channels and length else None
        else:
            file.seek(length + length % 2, 1)
    return None
