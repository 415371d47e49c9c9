"""Finds the images of a folder and their masks from names and headers; without TensorFlow."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, or_skip
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.folders.class_folder import (
    files_below,
    split_folders,
    split_the_rest,
    subfolders,
    validation_folder,
)
from accel_engine.data.folders.file_check import unreadable_note
from accel_engine.data.folders.image_folder_scan import common_shape
from accel_engine.data.folders.image_header import SUFFIXES, is_whole_image
from accel_engine.data.folders.layout import IMAGE_NAMES, MASK_NAMES
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import DataError

MASK_SUFFIXES = (".png", ".bmp")
"""Suffixes of masks: JPEG would change their values."""

CLASS_NAMES_FILE = "classes.txt"
"""A file beside the folders that names a class per line, that of value 0 first."""

_NAMED = 3
"""Number of files without a mask that are named."""


@dataclass(frozen=True, slots=True)
class MaskFiles:
    """The images of a split, and the mask of each."""

    images: tuple[str, ...]
    masks: tuple[str, ...]

    def select(self, rows: npt.NDArray[np.intp]) -> "MaskFiles | None":
        """The files at ``rows``; ``None`` if there are none."""
        if not len(rows):
            return None
        return MaskFiles(tuple(self.images[row] for row in rows), tuple(self.masks[row] for row in rows))


@dataclass(frozen=True, slots=True)
class MaskFolder:
    """A folder of images with masks.

    Attributes:
        train: The training files.
        validation: The validation files; ``None`` if there are none.
        test: The test files; ``None`` if there are none.
        shape: Height, width and channels to which images are converted.
        class_names: Names of the classes of values 0, 1 and so on; empty if the folder does not tell.
        notes: Notes for the user.
    """

    train: MaskFiles
    validation: MaskFiles | None
    test: MaskFiles | None
    shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    notes: tuple[str, ...]


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find counts and the images' shape; only reading tells the classes, unless the folder names them.

    Raises:
        DataError: The folder does not have images with masks.
        PlanError: The size is invalid, or the split does not fit.
    """
    folder = scan_mask_folder(entry, options)
    image, mask = ArraySpec(folder.shape, "uint8"), ArraySpec(folder.shape[:2], "uint8")
    splits = (folder.train, folder.validation, folder.test)
    counts = [len(split.images) if split else 0 for split in splits]
    files = [file for split in splits if split for file in (*split.images, *split.masks)]
    return replace(
        entry,
        shape=folder.shape,
        classes=len(folder.class_names) or None,
        examples=counts[0],
        validation_examples=counts[1],
        test_examples=counts[2],
        notes=(*entry.notes, *folder.notes, *unreadable_note(files, is_whole_image, options)),
        task="segmentation",
        spec=Batch(image, mask),
        columns=(
            EntryColumn("image", "image", "input", detail=str(image)),
            EntryColumn("mask", "mask", "target", missing=0, detail=str(mask)),
        ),
        class_names=folder.class_names,
        samples=tuple(
            (Path(image).name, Path(mask).name)
            for image, mask in zip(folder.train.images[:3], folder.train.masks[:3], strict=True)
        ),
    )


def scan_mask_folder(entry: DatasetEntry, options: DataOptions) -> MaskFolder:
    """Find the images of a folder and their masks.

    Args:
        entry: Has the path of a folder with ``images`` and ``masks``, or with ``train``, ``val`` and ``test`` that
            have these.
        options: The images' size, and how validation images are chosen if the folder is not split.

    Raises:
        DataError: An image has no mask, unless these are skipped; or there are no images.
        PlanError: The size is invalid, or the split does not fit.
    """
    root = Path(entry.path or ".")
    train_root, validation_root, test_root = split_folders(root)
    if train_root is None:
        validation_root = test_root = None
    notes: list[str] = []
    skip = options.invalid_examples == "skip"
    train = _read_split(train_root or root, notes, skip=skip)
    validation, test = (
        _read_split(folder, notes, skip=skip) if folder is not None else None for folder in (validation_root, test_root)
    )
    if options.validation_data:
        validation = _read_split(validation_folder(options), notes, skip=skip)
    elif validation is None and test is not None and options.split == "auto":
        validation, test = test, None
        notes.append(f"validating on {test_root}, as there is no validation folder")
    shape, sizes = common_shape(train.images, options)
    found = (validation is not None, test is not None)
    rows, split = split_the_rest(len(train.images), options, None, found, "images")
    return MaskFolder(
        train.select(rows.train) or train,
        validation or train.select(rows.validation),
        test or train.select(rows.test),
        shape,
        _class_names(root),
        (*notes, *split, *sizes),
    )


def _read_split(root: Path, notes: list[str], *, skip: bool) -> MaskFiles:
    """The images of a folder with a folder of images and one of masks, and their masks."""
    folders = {path.name.lower(): path for path in subfolders(root)}
    parts = [next((folders[name] for name in names if name in folders), None) for names in (IMAGE_NAMES, MASK_NAMES)]
    if None in parts:
        raise DataError(f"{root} needs the subfolders {IMAGE_NAMES[0]} and {MASK_NAMES[0]}")
    image_root, mask_root = (path for path in parts if path is not None)
    images = files_below(image_root, SUFFIXES)
    found = files_below(mask_root, MASK_SUFFIXES)
    if not images:
        raise DataError(f"{image_root} has no images ({', '.join(SUFFIXES)})")
    if not found:
        suffixes = ", ".join(MASK_SUFFIXES)
        raise DataError(f"{mask_root} has no masks ({suffixes}; other formats would change their values)")
    masks = {Path(file).stem: file for file in found}
    names = [Path(file).stem for file in images]
    if len(masks) < len(found) or len({*names}) < len(names):  # equal names in several subfolders
        masks = {_relative(file, mask_root): file for file in found}
        names = [_relative(file, image_root) for file in images]
    pairs = [(image, masks[name]) for image, name in zip(images, names, strict=True) if name in masks]
    missing = [os.path.relpath(image, root) for image, name in zip(images, names, strict=True) if name not in masks]
    if missing:
        listed = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
        problem = f"{len(missing)} of {len(images)} images in {image_root} have no mask of the same name: {listed}"
        if not skip or not pairs:
            raise or_skip(DataError(problem)) if pairs else DataError(problem)
        notes.append(f"{problem}; they are left out")
    if unused := len({*masks} - {*names}):
        notes.append(f"{unused} masks in {mask_root} have no image")
    return MaskFiles(tuple(image for image, _ in pairs), tuple(mask for _, mask in pairs))


def _relative(file: str, root: Path) -> str:
    return os.path.splitext(os.path.relpath(file, root))[0]


def _class_names(root: Path) -> tuple[str, ...]:
    path = root / CLASS_NAMES_FILE
    try:
        return tuple(line.strip() for line in path.read_text().splitlines() if line.strip()) if path.is_file() else ()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
