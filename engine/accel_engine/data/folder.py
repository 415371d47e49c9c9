"""Images in a folder per class, decoded by TensorFlow."""

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
from accel_engine.data.folder_tree import SplitFiles, read_splits
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.errors import DataError

THREADS = 8
"""Images decoded at the same time."""


class ImageFiles:
    """Images that are read and decoded whenever they are asked for.

    Args:
        files: Their paths.
        shape: Height, width and channels that all are brought to.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, files: Sequence[Path], shape: tuple[int, int, int]) -> None:
        self.shape = (len(files), *shape)
        self._files = files

    @property
    def nbytes(self) -> int:
        """Bytes that all images would take."""
        return int(np.prod(self.shape, dtype=np.int64))

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint8]:
        """Decode the images of these rows.

        Raises:
            DataError: One cannot be read; it is named.
        """
        images = np.empty((len(indices), *self.shape[1:]), np.uint8)

        def fill(place: int) -> None:
            images[place] = self._decode(self._files[indices[place]])

        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(fill, range(len(indices))):
                pass  # only asked for, so that an error is raised here
        return images

    def _decode(self, path: Path) -> npt.NDArray[np.uint8]:
        height, width, channels = self.shape[1:]
        return resized(decode(path)[:, :, :channels], height, width)

    def __len__(self) -> int:
        return self.shape[0]


def decode(path: Path) -> npt.NDArray[np.uint8]:
    """The image of a file, ``[height, width, 3]``; the first of an animation.

    Raises:
        DataError: It cannot be read; it is named.
    """
    try:
        with tf.device("/CPU:0"):
            # What a file has for channels differs from format to format; three can be had of all.
            decoded: npt.NDArray[np.uint8] = tf.io.decode_image(
                path.read_bytes(), channels=3, expand_animations=False
            ).numpy()
            return decoded
    except OSError as error:
        raise DataError(f"cannot read the image {path}: {error.strerror or error}") from error
    except (tf.errors.OpError, ValueError) as error:
        # TensorFlow's own words, without the names of what it ran.
        why = re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]", "", str(error).splitlines()[0])
        raise DataError(f"cannot decode the image {path}: {why}") from error


def resized(image: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Bring an image, ``[height, width, channels]``, to a size."""
    if image.shape[:2] == (height, width):
        return image
    with tf.device("/CPU:0"):
        fitted = tf.image.resize(image, (height, width), antialias=True)
        pixels: npt.NDArray[np.uint8] = tf.cast(tf.round(fitted), tf.uint8).numpy()
        return pixels


def read(entry: DatasetEntry, *, image_size: str | None, seed: int) -> Dataset:
    """Read a folder of images; held in memory when they fit there, else read as they are needed.

    Args:
        entry: Has the folder's path.
        image_size: ``HEIGHTxWIDTH`` that images are brought to; the most common size when left out.
        seed: Decides what is split off for validation where the folder brings no split along.

    Raises:
        DataError: It is no folder with a folder of images per class, or an image cannot be read.
    """
    tree = read_splits(entry, image_size)

    def split(part: SplitFiles) -> Split:
        lazy = ImageFiles(part.files, tree.shape)
        held = fits_in_memory(lazy.nbytes)
        return Split(
            lazy.take(np.arange(len(lazy))) if held else lazy,
            np.array(part.labels, np.int32),
        )

    train, validation = tree.split(seed)
    return Dataset(
        entry.name,
        split(train),
        split(validation) if validation is not None else None,
        len(tree.class_names),
        tree.class_names,
        numbers=PIXELS,
        notes=tree.notes,
    )
