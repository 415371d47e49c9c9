"""Reads images from a folder per class, decoded by TensorFlow."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split, fits_in_memory
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.image_folder_scan import SplitFiles, scan_image_folder
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.errors import DataError

THREADS = 8
"""Number of images decoded in parallel."""


class ImageFiles:
    """Images that are read and decoded lazily.

    Args:
        files: Their paths.
        shape: Height, width and channels to which they are converted.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, files: Sequence[Path], shape: tuple[int, int, int]) -> None:
        self.shape = (len(files), *shape)
        self._files = files

    @property
    def nbytes(self) -> int:
        """Bytes of all images in memory."""
        return int(np.prod(self.shape, dtype=np.int64))

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint8]:
        """Decode the images at ``indices``.

        Raises:
            DataError: An image cannot be read.
        """
        images = np.empty((len(indices), *self.shape[1:]), np.uint8)

        def fill(row: int) -> None:
            images[row] = self._decode(self._files[indices[row]])

        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(fill, range(len(indices))):
                pass  # iterate, so that errors are raised here
        return images

    def _decode(self, path: Path) -> npt.NDArray[np.uint8]:
        height, width, channels = self.shape[1:]
        return resized(decode(path)[:, :, :channels], height, width)

    def __len__(self) -> int:
        return self.shape[0]


def decode(path: Path) -> npt.NDArray[np.uint8]:
    """Decode an image file, ``[height, width, 3]``; the first frame of an animation.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with tf.device("/CPU:0"):
            # The number of channels varies with the format; all formats can be decoded to three.
            decoded: npt.NDArray[np.uint8] = tf.io.decode_image(
                path.read_bytes(), channels=3, expand_animations=False
            ).numpy()
            return decoded
    except OSError as error:
        raise DataError(f"cannot read the image {path}: {error.strerror or error}") from error
    except (tf.errors.OpError, ValueError) as error:
        # TensorFlow's message without the names of ops.
        message = re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]", "", str(error).splitlines()[0])
        raise DataError(f"cannot decode the image {path}: {message}") from error


def resized(image: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Resize an image, ``[height, width, channels]``, with antialiasing."""
    if image.shape[:2] == (height, width):
        return image
    with tf.device("/CPU:0"):
        fitted = tf.image.resize(image, (height, width), antialias=True)
        pixels: npt.NDArray[np.uint8] = tf.cast(tf.round(fitted), tf.uint8).numpy()
        return pixels


def read(entry: DatasetEntry, *, image_size: str | None, seed: int) -> Dataset:
    """Read a folder of images; loaded into memory if they fit, read lazily otherwise.

    Args:
        entry: Has the folder's path.
        image_size: ``HEIGHTxWIDTH`` to which images are resized; the most common size by default.
        seed: Seed of the validation split, if the folder has none.

    Raises:
        DataError: The folder does not have a folder of images per class, or an image cannot be read.
    """
    folder = scan_image_folder(entry, image_size)

    def split(part: SplitFiles) -> Split:
        lazy = ImageFiles(part.files, folder.shape)
        return Split(
            lazy.take(np.arange(len(lazy))) if fits_in_memory(lazy.nbytes) else lazy,
            np.array(part.labels, np.int32),
        )

    train, validation = folder.split(seed)
    return Dataset(
        entry.name,
        split(train),
        split(validation) if validation is not None else None,
        len(folder.class_names),
        folder.class_names,
        value_range=PIXELS,
        notes=folder.notes,
    )
