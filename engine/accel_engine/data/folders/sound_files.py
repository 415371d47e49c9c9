"""Reads sounds with libsndfile, as players play them."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import soundfile

from accel_engine.errors import DataError, UnreadableError
from accel_engine.files import regular

_SHORTENED = re.compile(r"^ *(?:data|SSND|Data Size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
"""Finds libsndfile's note on a file that ends before its samples do."""

_ENDLESS = (0x7FFFF000, 0x7FFFFFDB, 0x7FFFFFFF, 0x80000000, 0xFFFFFFDB, 0xFFFFFFFF)
"""Numbers of bytes that programs write into a header before they know how many will follow."""

_ESTIMATED = "MP3"
"""The format whose header may only estimate the number of samples."""

_COUNTED = (_ESTIMATED, "WAV", "WAVEX")
"""Formats of which libsndfile does not believe the header, so that their end need not be looked for."""

_FILLING = 8
"""A file counts as cut if it lacks at least this many bytes of samples."""

_CONTINUATION = 1024
"""Samples, at least, by which a sound is continued before it is resampled."""

_STEPS = 8
"""A longer sound is cut at a multiple of this part of the length that is kept."""

_NEARLY = 0.999
"""The first part of a sound is kept that has at least this share of the energy of the loudest part."""

_MOST_RATE, _MOST_RATIO = 1 << 20, 64
"""Samples per second at most, and the largest ratio between them and the wanted ones, either way."""


class SoundHeader(NamedTuple):
    """The header of a sound: samples per second, number of channels, and samples of each."""

    rate: int
    channels: int
    samples: int


def sound_header(path: Path) -> SoundHeader:
    """Read the header of a sound, and look whether its end is there.

    Raises:
        UnreadableError: The file cannot be read, is cut, or is not a sound.
    """
    with _opened(path) as (_, header):
        return header


def read_sound(
    path: Path, samples: int, rate: int, first: int | None = None
) -> tuple[npt.NDArray[np.float32], SoundHeader]:
    """Read a sound, its channels mixed into one, at some sample rate; of a longer one, a part.

    Args:
        path: The file.
        samples: Number of samples; shorter sounds are padded with silence.
        rate: Samples per second.
        first: The sample at this rate where the part begins; by default, it is the loudest part.

    Returns:
        float32 ``[samples]``, from -1 to 1 unless the file has larger numbers, and the file's header.

    Raises:
        UnreadableError: The file cannot be read, is cut, or is not a sound.
        DataError: The file has numbers that are not finite.
    """
    with _opened(path) as (file, header):
        if not 1 / _MOST_RATIO <= header.rate / rate <= _MOST_RATIO:
            raise DataError(f"cannot use the sound {path}: it has {header.rate} samples per second and others {rate}")
        wanted = samples if header.rate == rate else math.ceil((samples + 1) * header.rate / rate)
        wanted = min(wanted, header.samples)
        if wanted < header.samples:
            part = _loudest_part(file, wanted, header.samples) if first is None else first * header.rate // rate
            file.seek(min(part, header.samples - wanted))
        channels = file.read(wanted, dtype="float32", always_2d=True)
        if len(channels) < wanted:
            if file.format != _ESTIMATED or not len(channels):
                raise UnreadableError("it ends too early")
            header = header._replace(samples=len(channels))
    if not np.isfinite(channels).all():
        raise DataError(f"cannot use the sound {path}: it has samples that are not finite numbers")
    found = resampled(channels.mean(axis=1), header.rate, rate)[:samples]
    sound = np.zeros(samples, np.float32)
    sound[: len(found)] = found
    return sound, header


def _loudest_part(file: soundfile.SoundFile, wanted: int, samples: int) -> int:
    """Where some samples begin that have the most energy; a few at a time are in memory."""
    step = max(1, wanted // _STEPS)
    blocks = file.blocks(step, dtype="float32", always_2d=True)
    energy = np.array([float(np.square(block.mean(axis=1)).sum()) for block in blocks])
    if file.format == _ESTIMATED:
        samples = min(samples, file.tell())
    of_parts = np.convolve(energy, np.ones(-(-wanted // step)), "valid")
    first = int(np.argmax(of_parts >= _NEARLY * of_parts.max())) if np.isfinite(of_parts).all() else 0
    return max(0, min(first * step, samples - wanted))


def sound_window_starts(length: int, samples: int) -> list[int | None]:
    """Where the windows of a sound begin; ``None``, its loudest part, of a sound of less than two.

    The last window ends with the sound, and may begin within the one before.
    """
    return [min(first, length - samples) for first in range(0, length, samples)] if length >= 2 * samples else [None]


def resampled_length(samples: int, rate: int, new_rate: int) -> int:
    """Number of samples of a sound at another rate."""
    return max(1, round(samples * new_rate / rate))


def resampled(sound: npt.NDArray[np.float32], rate: int, new_rate: int) -> npt.NDArray[np.float32]:
    """Resample a sound, ``[samples]``, by its Fourier transform, without the frequencies that the new rate has not."""
    if rate == new_rate:
        return sound
    old, new = (each // math.gcd(rate, new_rate) for each in (rate, new_rate))
    periods = math.ceil((len(sound) + _CONTINUATION) / old)
    # A Fourier transform takes the start of a sound to follow its end: both are continued smoothly.
    more = periods * old - len(sound)
    continued = np.roll(np.pad(sound, (more // 2, more - more // 2), "reflect"), -(more // 2))
    spectrum = np.fft.rfft(continued)[: periods * min(old, new) // 2 + 1]
    made = np.fft.irfft(spectrum, periods * new) * (new / old)
    return made[: resampled_length(len(sound), rate, new_rate)].astype(np.float32)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[soundfile.SoundFile, SoundHeader]]:
    """A file at its first sample, and its header."""
    try:
        with _open(path) as file:
            yield file, _checked(file)
    except OSError as error:
        raise UnreadableError(f"cannot read the sound {path}: {error.strerror or error}") from error
    except UnreadableError as error:
        raise UnreadableError(f"cannot read the sound {path}: {error}") from None
    except soundfile.SoundFileError as error:
        kind = path.suffix[1:].upper() or "sound"
        raise UnreadableError(f"cannot read the sound {path}: not a valid {kind} file") from error


def _open(path: Path) -> soundfile.SoundFile:
    """Open a file; where a program could not go back to say how many bytes follow, all count that do."""
    file = soundfile.SoundFile(os.fsencode(regular(path)))
    if file.frames or file.format != "WAV":
        return file
    file.close()
    before, mark, samples = path.read_bytes().partition(b"data" + bytes(4))
    if not samples:
        raise UnreadableError("it has no samples")
    return soundfile.SoundFile(BytesIO(before + mark[:4] + b"\xff" * 4 + samples))


def _checked(file: soundfile.SoundFile) -> SoundHeader:
    for told, found in _SHORTENED.findall(file.extra_info):
        if int(told) - int(found) >= _FILLING and int(told) not in _ENDLESS:
            raise UnreadableError(f"it ends too early, with {int(found):,} of {int(told):,} bytes of samples")
    if file.samplerate > _MOST_RATE:
        raise UnreadableError(f"it has {file.samplerate:,} samples per second")
    samples = file.frames
    if samples < 1:
        raise UnreadableError("it has no samples")
    if file.format not in _COUNTED:
        file.seek(samples - 1)
        if not len(file.read(1)):
            raise UnreadableError(f"it ends too early: it has not all of {samples:,} samples")
        file.seek(0)
    return SoundHeader(file.samplerate, file.channels, samples)
