"""Reads images, sounds and texts to predict, an example for each file or line."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from accel_engine.data.folders.audio_folder import sound_tensor
from accel_engine.data.folders.audio_folder_scan import wrong_rate
from accel_engine.data.folders.wav_header import read_wav_header
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import AccelError, DataError
from accel_engine.run.diagnostics import InputSpec
from accel_engine.trained.prediction.examples import Examples
from accel_engine.trained.prediction.image_examples import example_of


def read_images(path: Path, spec: InputSpec) -> Examples:
    """Read an image as an example of the run's data."""
    try:
        x, notes = example_of(path, spec)
    except AccelError as error:
        return Examples((str(path),), None, {0: str(error)})
    return Examples((str(path),), x[np.newaxis], notes=tuple(f"{path}: {note}" for note in notes))


def read_sound(path: Path, spec: ArraySpec, rate: int) -> Examples:
    """Read a WAV file, cut or padded with silence to the length of the run's sounds.

    Args:
        path: The file.
        spec: ``[samples, 1]``.
        rate: Samples per second of the run's sounds.
    """
    samples = spec.shape[0] or 0
    try:
        header = read_wav_header(path)
        if header.rate != rate:
            raise DataError(wrong_rate(str(path), header.rate, rate))
        sound = sound_tensor(tf.constant(str(path)), samples, rate).numpy()
    except AccelError as error:
        return Examples((str(path),), None, {0: str(error)})
    except tf.errors.OpError:
        return Examples((str(path),), None, {0: f"cannot decode the sound {path}"})
    changed = "cut" if header.samples > samples else "padded with silence" if header.samples < samples else ""
    notes = (f"{path}: {changed} from {header.samples:,} to {samples:,} samples",) if changed else ()
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
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start:,}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    found = [line for line in lines if line.strip()]
    if not found:
        raise DataError(f"{path} has no text")
    return texts(found, spec)
