"""Makes images and histograms of what a script logs: of arrays, pictures of Pillow, figures of Matplotlib."""

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from accel_engine.run.media.items import Histogram, LoggedImage

MAX_PICTURES = 64
"""Most pictures of a batch that are shown."""

_GAP = 1  # pixels between the pictures of a batch
_GRAY = 128  # of a gap: it differs from black and from white

_PALETTES = {"LA", "P", "PA"}
_DIRECT_MODES = {"1", "F", "I", "I;16", "L", "RGB", "RGBA"}  # modes of Pillow whose arrays are intensities

_CHANNELS = {1, 3, 4}
_SHAPES = "[height, width], [height, width, 1, 3 or 4] or a batch [pictures, height, width, 1, 3 or 4]"


_BINS = 64
"""Bins by default."""


def image_of(value: Any) -> LoggedImage:
    """Make an image of an array, a tensor, a picture of Pillow or a figure of Matplotlib.

    Args:
        value: Shape ``[height, width]``, ``[height, width, channels]`` or ``[pictures, height, width, channels]`` with
            1, 3 or 4 channels; a fourth is opacity. Floats from 0 to 1, integers from 0 to 255, or booleans. The first
            :data:`MAX_PICTURES` pictures of a batch are arranged as a grid.

    Raises:
        ValueError: The shape, the type or the values are others.
    """
    values = _array(value)
    notes = []
    if not values.size:
        raise ValueError(f"an image has pixels; this array of the shape {list(values.shape)} has no element")
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim not in {3, 4} or values.shape[-1] not in _CHANNELS:
        raise ValueError(f"an image has the shape {_SHAPES}, not {list(values.shape)}{_advice(values.shape)}")
    pictures = len(values)
    if values.ndim == 4:
        values = values[:MAX_PICTURES]
    pixels = _levels(values)
    if pixels.shape[-1] == 4:
        if (pixels[..., 3] < 255).any():
            notes.append("drawn on white")
        pixels = _on_white(pixels)
    if pixels.ndim == 4:
        pixels, columns = _grid(pixels)
        if pictures > 1:
            shown = f"first {MAX_PICTURES} of {pictures}" if pictures > MAX_PICTURES else f"{pictures}"
            notes.append(f"{shown} pictures, {columns} per row")
    return LoggedImage(pixels, "; ".join(notes))


def _advice(shape: tuple[int, ...]) -> str:
    """How to make an image of an array whose last axis has no channels."""
    advice = ""
    if len(shape) in {3, 4} and shape[-3] in _CHANNELS:
        axes, channels = ("1, 2, 0", 0) if len(shape) == 3 else ("0, 2, 3, 1", 1)
        advice += f"; if the channels come first, image.permute({axes}) or np.moveaxis(image, {channels}, -1)"
    if len(shape) == 3:
        advice += "; for a batch without channels, images[..., None]"
    return advice


def _array(value: Any) -> npt.NDArray[Any]:
    canvas: Any = getattr(value, "canvas", None)
    if hasattr(canvas, "buffer_rgba"):
        canvas.draw()
        value = canvas.buffer_rgba()
    mode = getattr(value, "mode", None)
    if isinstance(mode, str) and hasattr(value, "convert") and mode not in _DIRECT_MODES:
        value = value.convert("RGBA" if mode in _PALETTES else "RGB")
    return numbers_of(value, "an image")


def numbers_of(value: Any, what: str) -> npt.NDArray[Any]:
    """Convert to an array of booleans, integers or floats.

    Raises:
        ValueError: The value is not an array of numbers.
    """
    try:
        values = np.asarray(value)
        if values.dtype.kind == "V":  # such as bfloat16
            values = values.astype(np.float32)
    except Exception as error:  # each library has its own
        raise ValueError(f"{what} must be an array of numbers, not {type(value).__name__}: {error}") from error
    if values.dtype.kind not in "buif":
        raise ValueError(f"{what} must be an array of numbers, not {values.dtype} of {type(value).__name__}")
    return values


def _levels(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Intensities as uint8."""
    kind = values.dtype.kind
    if values.dtype == np.uint8:
        return values
    if kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    low, high = values.min(), values.max()
    if kind == "f":
        if not np.isfinite([low, high]).all():
            raise ValueError("an image of floats has values from 0 to 1; some are NaN or infinite: see np.nan_to_num")
        low, high = np.rint(255.0 * np.array([low, high], np.float64))
    if low < 0 or high > 255:
        found = f"{values.min():g} to {values.max():g}"
        right = "floats from 0 to 1: scale or clip them" if kind == "f" else "integers from 0 to 255: scale them"
        raise ValueError(f"an image has {right}; these are from {found}")
    levels = np.rint(255.0 * values.astype(np.float32)) if kind == "f" else values
    return cast("npt.NDArray[np.uint8]", levels.astype(np.uint8))


def _on_white(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Mix the colours with white, ``255 - opacity / 255 * (255 - colour)``, in the 16 bits that this takes."""
    opacity = pixels[..., 3:].astype(np.uint16)
    mixed = np.uint16(255 * 255 + 127) - opacity * (255 - pixels[..., :3])
    return cast("npt.NDArray[np.uint8]", (mixed // 255).astype(np.uint8))


def _grid(pictures: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], int]:
    """Pictures side by side, and how many are in a row."""
    count, height, width, channels = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    down, across = height + _GAP, width + _GAP
    grid = np.full((rows * down - _GAP, columns * across - _GAP, channels), _GRAY, np.uint8)
    for index, picture in enumerate(pictures):
        top, left = index // columns * down, index % columns * across
        grid[top : top + height, left : left + width] = picture
    return grid, columns


def histogram_of(values: Any, bins: int = _BINS) -> Histogram:
    """Count the values of an array or a tensor of any shape in bins of one width.

    Args:
        values: Numbers or booleans. Those that are NaN or infinite are counted, and in no bin.
        bins: Number of bins from the smallest to the largest value.

    Raises:
        ValueError: There are no values, or they are not numbers.
    """
    numbers = numbers_of(values, "a histogram").astype(np.float64).ravel()
    if not len(numbers):
        raise ValueError("a histogram needs values; this array is empty")
    if bins < 1:
        raise ValueError(f"a histogram has at least 1 bin, not {bins}")
    finite = numbers[np.isfinite(numbers)]
    not_finite = len(numbers) - len(finite)
    if not len(finite):
        return Histogram(np.zeros(0), np.zeros(0), not_finite)
    counts, edges = np.histogram(finite, _bins_or_edges(finite.min(), finite.max(), bins))
    return Histogram(edges.astype(np.float64), counts.astype(np.float64), not_finite)


def _bins_or_edges(low: float, high: float, bins: int) -> int | npt.NDArray[np.float64]:
    """The number of bins, or the edges of a single one where float64 cannot divide so wide or so narrow a range."""
    if low == high:
        low, high = low - 0.5, high + 0.5  # as NumPy does
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(low, high, bins + 1)
    return bins if (edges[1:] > edges[:-1]).all() else np.array([low, high])
