"""Converts images and masks to small ones of 8 bits."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.pixel_scaling import is_image
from accel_engine.run.diagnostics.views import MAX_SIDE, Image, Mask

_RANGES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0))
_LARGEST = {"bool": 1.0, "uint8": 255.0, "uint16": 65535.0}
_LEAST_SIDE = 12
"""Sides of a matrix of numbers that is shown as an image rather than as series."""


def is_picture(x: npt.NDArray[Any], kind: str) -> bool:
    """Whether arrays ``[examples, ...]`` are shown as images: images, and nearly square matrices."""
    shape = x.shape[1:]
    if len(shape) == 3:
        return is_image(shape)
    if len(shape) != 2 or kind not in ("images", "arrays"):
        return False
    square = min(shape) >= _LEAST_SIDE and max(shape) <= 2 * min(shape)
    return kind == "images" or x.dtype == np.uint8 or square


def pixel_range(x: npt.NDArray[Any]) -> tuple[float, float]:
    """The usual range that contains the finite values, ``[0, 1]``, ``[-1, 1]`` or ``[0, 255]``; else their own."""
    if x.dtype.name in _LARGEST:
        return 0.0, _LARGEST[x.dtype.name]
    finite = x[np.isfinite(x)]
    least, largest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return next(((low, high) for low, high in _RANGES if low <= least and largest <= high), (least, largest))


def image_views(x: npt.NDArray[Any], limits: tuple[float, float]) -> list[Image]:
    """Images of at most :data:`MAX_SIDE` pixels per side.

    Args:
        x: ``[images, height, width]`` or ``[images, height, width, channels]``.
        limits: The values that are black and white; NaN is black.
    """
    return [Image(pixels) for pixels in preview(x.reshape(*x.shape[:3], -1), limits)]


def preview(x: npt.NDArray[Any], limits: tuple[float, float]) -> npt.NDArray[np.uint8]:
    """Convert images to 8 bits, and shrink those larger than :data:`MAX_SIDE`.

    Args:
        x: ``[images, height, width, channels]``.
        limits: The values that are black and white.

    Returns:
        uint8 ``[images, height, width, channels]``.
    """
    longest = max(x.shape[1:3])
    if longest > MAX_SIDE:
        size = [max(1, side * MAX_SIDE // longest) for side in x.shape[1:3]]
        with tf.device("CPU:0"):
            x = tf.image.resize(x, size, tf.image.ResizeMethod.AREA).numpy()
    low, high = limits
    if limits != (0.0, 255.0):
        x = (x.astype(np.float32) - low) * (255 / max(high - low, 1e-9))
    return np.rint(np.clip(np.nan_to_num(x), 0, 255)).astype(np.uint8)


def mask_view(classes: npt.NDArray[Any]) -> Mask:
    """A mask of at most :data:`MAX_SIDE` pixels per side, each the class of the pixel at its middle.

    Args:
        classes: Class indices ``[height, width]``; pixels outside of 0 to 254 have no class.
    """
    step = max(1.0, max(classes.shape) / MAX_SIDE)
    rows, columns = (((np.arange(math.floor(side / step)) + 0.5) * step).astype(np.intp) for side in classes.shape)
    small = classes[np.ix_(rows, columns)]
    return Mask(np.where((small >= 0) & (small < 255), small, 255).astype(np.uint8))
