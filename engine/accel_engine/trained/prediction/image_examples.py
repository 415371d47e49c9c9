"""Converts image files to examples of a run's data."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.folders.image_folder import decode, resized
from accel_engine.run.diagnostics import InputSpec


def example_of(path: Path, input_spec: InputSpec) -> tuple[npt.NDArray[Any], list[str]]:
    """Convert an image file to an example of the run's data; returns it with notes on the conversion.

    Raises:
        DataError: The file cannot be read.
    """
    notes = []
    height, width, channels = input_spec.shape
    pixels = decode(path)
    if channels == 1:
        if not (pixels == pixels[:, :, :1]).all():
            shades: npt.NDArray[np.float32] = np.asarray(pixels @ np.array([0.299, 0.587, 0.114]))  # ITU-R BT.601
            pixels = np.rint(shades).astype(np.uint8)[:, :, np.newaxis]
            notes.append("converted to grayscale")
        pixels = pixels[:, :, :1]
    if pixels.shape[:2] != (height, width):
        notes.append(f"resized from {pixels.shape[0]}x{pixels.shape[1]} to {height}x{width}")
        pixels = resized(pixels, height, width)
    if channels == 4:
        pixels = np.concatenate([pixels, np.full((height, width, 1), 255, np.uint8)], axis=2)
    if (input_spec.low, input_spec.high) == (0.0, 255.0):
        return pixels if input_spec.integers else pixels.astype(np.float32), notes
    x = input_spec.low + pixels.astype(np.float32) / 255 * (input_spec.high - input_spec.low)
    notes.append(f"pixels scaled to [{input_spec.low:g}, {input_spec.high:g}], as in the run's data")
    return np.rint(x) if input_spec.integers else x, notes
