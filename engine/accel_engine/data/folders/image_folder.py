"""Reads images from a folder per class, decoded by TensorFlow."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.class_dataset import read_classes
from accel_engine.data.folders.image_folder_scan import scan_image_folder
from accel_engine.data.folders.image_header import is_whole_image, read_header
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.errors import UnreadableError


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a folder of images; loaded into memory if they fit, read lazily otherwise.

    Args:
        entry: Has the folder's path.
        options: The images' size, how validation images are chosen, and whether invalid images are skipped.
        progress: Reports the number of images read.

    Raises:
        DataError: The folder does not have a folder of images per class, or an image cannot be read.
    """
    folder, shape = scan_image_folder(entry, options)
    return read_classes(
        entry,
        folder,
        options,
        progress,
        decode=lambda path: image_tensor(tf.io.read_file(path), shape),
        shape=shape,
        dtype=np.uint8,
        explain=lambda path: decode_image(Path(path)),
        check=is_whole_image,
        value_range=PIXELS,
    )


def image_tensor(content: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
    """Decode an image in a graph.

    Args:
        content: The bytes of a PNG, JPEG, GIF or BMP file.
        shape: Height, width and channels of the result, uint8.
    """
    height, width, channels = shape
    # The number of channels varies with the format; all formats can be decoded to three.
    pixels = tf.io.decode_image(content, channels=3, expand_animations=False)[:, :, :channels]
    fits = tf.reduce_all(tf.shape(pixels)[:2] == (height, width))
    return tf.ensure_shape(tf.cond(fits, lambda: pixels, lambda: _resize(pixels, height, width)), shape)


def decode_image(path: Path) -> npt.NDArray[np.uint8]:
    """Decode an image file, ``[height, width, 3]``; the first frame of an animation.

    Raises:
        UnreadableError: It cannot be read.
    """
    read_header(path)
    try:
        with tf.device("/CPU:0"):
            decoded: npt.NDArray[np.uint8] = tf.io.decode_image(
                path.read_bytes(), channels=3, expand_animations=False
            ).numpy()
            return decoded
    except OSError as error:
        raise UnreadableError(f"cannot read the image {path}: {error.strerror or error}") from error
    except (tf.errors.OpError, ValueError) as error:
        raise UnreadableError(f"cannot decode the image {path}: {op_message(error)}") from error


def resized(image: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Resize an image, ``[height, width, channels]``, with antialiasing."""
    if image.shape[:2] == (height, width):
        return image
    with tf.device("/CPU:0"):
        pixels: npt.NDArray[np.uint8] = _resize(image, height, width).numpy()
        return pixels


def op_message(error: Exception) -> str:
    """TensorFlow's message without the names of ops."""
    return re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]", "", str(error).splitlines()[0])


def _resize(image: Any, height: int, width: int) -> tf.Tensor:
    return tf.cast(tf.round(tf.image.resize(image, (height, width), antialias=True)), tf.uint8)
