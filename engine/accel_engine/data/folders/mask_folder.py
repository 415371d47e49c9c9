"""Reads images with masks, which have a class per pixel."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from accel_engine.data.data_options import DataOptions, Progress, or_skip
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.file_array import FileArray
from accel_engine.data.folders.image_folder import decode_image, image_tensor
from accel_engine.data.folders.image_header import is_whole_image, read_header
from accel_engine.data.folders.mask_classes import MaskClasses, read_palette
from accel_engine.data.folders.mask_folder_scan import MaskFiles, scan_mask_folder
from accel_engine.data.folders.read_splits import read_splits
from accel_engine.data.parallel_decoder import ParallelDecoder
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.errors import DataError

_DEPTH_16 = b"\x10"


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read images, uint8 ``[n, height, width, channels]``, and masks, class indices uint8 ``[n, height, width]``.

    Masks are resized to the size of the images with the nearest pixel.

    Args:
        entry: Has the folder's path.
        options: The images' size, how validation images are chosen, and whether invalid examples are skipped.
        progress: Reports the number of files read.

    Raises:
        DataError: An image has no mask, or a file cannot be read.
    """
    folder = scan_mask_folder(entry, options)
    images = ParallelDecoder(lambda path: image_tensor(tf.io.read_file(path), folder.shape))
    masks = ParallelDecoder(lambda path: _mask_tensor(tf.io.read_file(path), *folder.shape[:2]))
    classes = MaskClasses()

    def lazy(part: MaskFiles | None) -> Split | None:
        if part is None:
            return None
        return Split(
            FileArray(
                part.images, images, folder.shape, np.uint8, lambda path: decode_image(Path(path)), check=is_whole_image
            ),
            FileArray(part.masks, masks, folder.shape[:2], np.uint8, _explain_mask, classes.encode, is_whole_image),
        )

    splits, warnings = read_splits(
        [lazy(part) for part in (folder.train, folder.validation, folder.test)], options, progress
    )
    for split in splits:  # the classes are only known after all masks were decoded
        if split is not None and isinstance(split.targets, FileArray):
            valid = split.targets.find_valid(progress)
            if not valid.all():
                raise or_skip(split.targets.problem(int(np.argmin(valid))))
    mapping, mapped = classes.finish(read_palette(Path(folder.train.masks[0])), folder.class_names)
    for split in splits:
        if split is not None and isinstance(split.targets, np.ndarray):
            mapping.apply(split.targets)
    train, validation, test = splits
    assert train is not None  # noqa: S101 (a folder has training images)
    return Dataset(
        entry.name,
        train,
        validation,
        test,
        class_names=mapping.class_names,
        task="segmentation",
        kind="images",
        value_range=PIXELS,
        notes=(*folder.notes, *mapped),
        warnings=tuple(warnings),
    )


def _mask_tensor(content: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Decode the colours of a mask in a graph, ``0xRRGGBB``, int32 ``[height, width]``."""
    is_png = tf.strings.substr(content, 1, 3) == b"PNG"
    is_deep = tf.logical_and(is_png, tf.strings.substr(content, 24, 1) == _DEPTH_16)
    with tf.control_dependencies([tf.debugging.Assert(tf.logical_not(is_deep), [content])]):
        pixels = tf.io.decode_image(content, channels=3, expand_animations=False)
    fitted = tf.cast(tf.image.resize(pixels, (height, width), method="nearest"), tf.int32)
    return fitted[:, :, 0] * (1 << 16) + fitted[:, :, 1] * (1 << 8) + fitted[:, :, 2]


def _explain_mask(path: str) -> None:
    """Raise the reason why a mask cannot be decoded."""
    read_header(Path(path))
    with Path(path).open("rb") as file:
        header = file.read(25)
    if header[1:4] == b"PNG" and header[24:25] == _DEPTH_16:
        raise DataError(f"the mask {path} has 16 bits per pixel; save it with 8, which is enough for 256 classes")
    decode_image(Path(path))
