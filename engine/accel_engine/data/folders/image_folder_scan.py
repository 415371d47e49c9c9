"""Finds the classes, splits and sizes of a folder of images from names and headers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.data.folders.class_folder import ClassFolder, scan_class_folder, survey_of_classes
from accel_engine.data.folders.file_check import unreadable_note
from accel_engine.data.folders.headers import read_headers
from accel_engine.data.folders.image_header import SUFFIXES, is_whole_image, read_header


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find classes, counts and the images' shape.

    Raises:
        DataError: The folder does not have a folder of images per class.
        PlanError: The size is invalid, or the split does not fit.
    """
    folder, shape = scan_image_folder(entry, options)
    unreadable = unreadable_note(folder.files, is_whole_image, options)
    return survey_of_classes(entry, folder, shape, "uint8", "image", unreadable)


def scan_image_folder(entry: DatasetEntry, options: DataOptions) -> tuple[ClassFolder, tuple[int, int, int]]:
    """Find the images of a folder, their classes, and the height, width and channels to which they are converted.

    Args:
        entry: Has the folder's path.
        options: The images' size, and how validation images are chosen if the folder is not split.

    Raises:
        DataError: The folder does not have a folder of images per class.
        PlanError: The size is invalid, or the split does not fit.
    """
    folder = scan_class_folder(entry, options, SUFFIXES, "images")
    shape, notes = common_shape(folder.files, options)
    return replace(folder, notes=(*folder.notes, *notes)), shape


def common_shape(files: Sequence[str], options: DataOptions) -> tuple[tuple[int, int, int], list[str]]:
    """Height, width and channels to which images are converted, from some of their headers, and notes for the user.

    Raises:
        DataError: A header is damaged, unless invalid images are skipped; or all are.
        PlanError: The size is invalid.
    """
    headers = [header for _, header in read_headers(files, read_header, options)]
    channels = max(header.channels for header in headers)
    sizes = Counter((header.height, header.width) for header in headers)
    (height, width), _ = sizes.most_common(1)[0]
    if options.image_size is not None:
        return (*parse_size(options.image_size), channels), []
    if len(sizes) == 1:
        return (height, width, channels), []
    return (height, width, channels), [
        f"images have several sizes: resized to {height}x{width}, the most common one (change it with image_size)"
    ]
