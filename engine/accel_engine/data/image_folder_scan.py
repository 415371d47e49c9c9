"""Finds the classes, splits and sizes of a folder of images from names and headers."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import split_rows, validation_count
from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.data.image_header import SUFFIXES, read_header
from accel_engine.errors import DataError

HEADERS_READ = 64
"""Number of images whose headers are read to find the size and channels."""

_TRAIN = ("train", "training")
_VALIDATION = ("validation", "valid", "val", "test")
"""Names of subfolders with a split, preferred ones first."""


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The images of a split.

    Attributes:
        files: Sorted paths.
        labels: Class index of each.
    """

    files: tuple[Path, ...]
    labels: tuple[int, ...]

    def select(self, rows: npt.NDArray[np.intp]) -> "SplitFiles":
        """Select the images at ``rows``."""
        return SplitFiles(tuple(self.files[row] for row in rows), tuple(self.labels[row] for row in rows))


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """A folder of images by class.

    Attributes:
        class_names: Names of the classes' folders, sorted.
        train: The training split; all images if the folder has no splits.
        validation: The folder's validation split.
        shape: Height, width and channels to which images are converted.
        notes: Notes for the user.
    """

    class_names: tuple[str, ...]
    train: SplitFiles
    validation: SplitFiles | None
    shape: tuple[int, int, int]
    notes: tuple[str, ...]

    def split(self, seed: int) -> tuple[SplitFiles, SplitFiles | None]:
        """The training and the validation split."""
        if self.validation is not None:
            return self.train, self.validation
        train, validation = split_rows(len(self.train.files), seed)
        return self.train.select(train), self.train.select(validation) if len(validation) else None


def survey(entry: DatasetEntry, image_size: str | None) -> DatasetEntry:
    """Find shape and counts.

    Raises:
        DataError: The folder does not have a folder of images per class.
    """
    folder = scan_image_folder(entry, image_size)
    examples = len(folder.train.files)
    if folder.validation is not None:
        validation = len(folder.validation.files)
    else:
        validation = validation_count(examples)
        examples -= validation
    return replace(
        entry,
        shape=folder.shape,
        classes=len(folder.class_names),
        examples=examples,
        validation_examples=validation,
    )


def scan_image_folder(entry: DatasetEntry, image_size: str | None) -> ImageFolder:
    """Find the images of a folder and their classes.

    Args:
        entry: Has the folder's path.
        image_size: ``HEIGHTxWIDTH`` to which images are resized; the most common size by default.

    Raises:
        DataError: The folder does not have a folder of images per class.
        PlanError: The size is invalid.
    """
    root = Path(entry.path or ".")
    children = {path.name.lower(): path for path in _folders(root)}
    train_root = next((children[name] for name in _TRAIN if name in children), None)
    names, train = _read_split(train_root or root, ())
    validation, notes = None, []
    if train_root is not None:
        validation_root = next((children[name] for name in _VALIDATION if name in children), None)
        if validation_root is not None:
            _, validation = _read_split(validation_root, names)
            if validation_root.name.lower() == "test":
                notes.append(f"validating on {validation_root}, as there is no validation folder")
    if validation is None:
        count, total = validation_count(len(train.files)), len(train.files)
        notes.append(f"validation split: {count} of {total} images")
    shape, note = _shape(train.files, image_size)
    return ImageFolder(names, train, validation, shape, (*notes, *note))


def _read_split(root: Path, known: Sequence[str]) -> tuple[tuple[str, ...], SplitFiles]:
    """The images below a folder with a folder per class; ``known`` are the only classes allowed."""
    folders = _folders(root)
    layout = "expected one subfolder of images per class"
    if not folders:
        raise DataError(f"{root} has no subfolders; {layout}")
    names = tuple(known) or tuple(path.name for path in folders)
    if len(names) < 2:
        raise DataError(f"{root} has only one folder, {names[0]}; classification needs at least two classes")
    files: list[Path] = []
    labels: list[int] = []
    for folder in folders:
        if folder.name not in names:
            raise DataError(f"{root} has the class {folder.name}, which has no training images")
        images = _images(folder)
        if not images and not known:
            raise DataError(f"{folder} has no images ({', '.join(SUFFIXES)}); {layout}")
        files += images
        labels += [names.index(folder.name)] * len(images)
    if not files:
        raise DataError(f"{root} has no images ({', '.join(SUFFIXES)})")
    return names, SplitFiles(tuple(files), tuple(labels))


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot read the folder {root}: {error.strerror or error}") from error


def _images(folder: Path) -> list[Path]:
    """All images below a folder, except hidden ones."""
    return sorted(
        Path(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(SUFFIXES) and not name.startswith(".")
    )


def _shape(files: Sequence[Path], image_size: str | None) -> tuple[tuple[int, int, int], list[str]]:
    headers = [read_header(files[row]) for row in np.linspace(0, len(files) - 1, HEADERS_READ).astype(int)]
    channels = max(header.channels for header in headers)
    sizes = Counter((header.height, header.width) for header in headers)
    (height, width), _ = sizes.most_common(1)[0]
    if image_size is not None:
        return (*parse_size(image_size), channels), []
    if len(sizes) == 1:
        return (height, width, channels), []
    return (height, width, channels), [
        f"images have several sizes: resized to {height}x{width}, the most common one (change it with image_size)"
    ]
