"""Reads images, sounds and texts to predict, an example for each file or line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Verb
from accel_engine.data.folders.audio_folder import SoundForm
from accel_engine.data.folders.image_folder import changes_of
from accel_engine.data.structure import ArraySpec
from accel_engine.data.texts.characters import encoding_of
from accel_engine.errors import AccelError, DataError
from accel_engine.image_files import read_pixels
from accel_engine.run.diagnostics import InputSpec
from accel_engine.trained.prediction.examples import Examples

_DTYPES = {(0.0, 255.0): np.uint8, (0.0, 65_535.0): np.uint16}
"""The pixels that have such a range."""


def read_images(path: Path, spec: InputSpec) -> Examples:
    """Read an image as an example of the run's data."""
    try:
        x, notes = example_of(path, spec)
    except AccelError as error:
        return Examples((str(path),), None, {0: str(error)})
    return Examples((str(path),), x[np.newaxis], notes=tuple(f"{path}: {note}" for note in notes))


def example_of(path: Path, input_spec: InputSpec) -> tuple[npt.NDArray[Any], list[str]]:
    """Convert an image file to an example of the run's data; returns it with notes on the conversion.

    Raises:
        DataError: The file cannot be read.
    """
    height, width, channels = input_spec.shape
    low, high = input_spec.low, input_spec.high
    dtype = _DTYPES.get((low, high))
    pixels, header = read_pixels(path, (height, width, min(channels, 3)), dtype)
    largest = np.iinfo(pixels.dtype).max
    found = (height, width, pixels.shape[2])
    before = f"from {header.height}x{header.width} "
    notes = [
        f"{verb} {before * (verb == 'resized')}{detail}"
        for verb, detail in changes_of(header, found, pixels.dtype.name)
    ]
    if channels == 4:
        pixels = np.concatenate([pixels, np.full((height, width, 1), largest, pixels.dtype)], axis=2)
    if dtype is not None:
        return pixels if input_spec.integers else pixels.astype(np.float32), notes
    x = low + pixels.astype(np.float32) / largest * (high - low)
    notes.append(f"pixels scaled to [{low:g}, {high:g}], as in the run's data")
    return np.rint(x) if input_spec.integers else x, notes


def read_sound(path: Path, spec: ArraySpec, rate: int) -> Examples:
    """Read a sound as an example of the run's data.

    Args:
        path: The file.
        spec: ``[samples, 1]``.
        rate: Samples per second of the run's sounds.
    """
    form = SoundForm(spec.shape[0] or 0, rate)
    try:
        sound, header = form.read(str(path))
    except AccelError as error:
        return Examples((str(path),), None, {0: str(error)})
    samples = f"from {form.length_of(header):,} to {form.samples:,} samples"
    details: dict[Verb, str] = {
        "mixed": f"from {header.channels} channels into one",
        "resampled": f"from {header.rate:,} to {rate:,} samples per second",
        "padded": f"with silence {samples}",
        "cut": samples,
    }
    notes = tuple(f"{path}: {verb} {details[verb]}" for verb in form.changes_of(header))
    return Examples((str(path),), sound[np.newaxis], notes=notes)


def texts(lines: Sequence[str], spec: ArraySpec) -> Examples:
    """Texts as examples.

    Args:
        lines: The texts.
        spec: ``[]`` or ``[1]``.
    """
    array = np.array(lines, object).reshape(len(lines), *(1 for _ in spec.shape))
    return Examples(tuple(lines), array)


def read_lines(path: Path, spec: ArraySpec) -> Examples:
    """Read a file with a text in each line.

    Raises:
        DataError: It cannot be read, or has no text.
    """
    try:
        content = path.read_bytes()
        lines = content.decode(encoding_of(content[:4])).splitlines()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path} is not UTF-8 at byte {error.start:,}, in line {line:,}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    found = [line for line in lines if line.strip()]
    if not found:
        raise DataError(f"{path} has no text")
    return texts(found, spec)
