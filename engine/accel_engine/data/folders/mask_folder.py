"""Describes and loads images with masks, which have a class per pixel."""

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import Progress, or_skip
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.folders.files import FileArray, FileForm, FilesSeen, listed_files, look_at, read_splits
from accel_engine.data.folders.folder_source import FolderSource, SplitFiles, subfolders
from accel_engine.data.folders.image_folder import ImageForm
from accel_engine.data.folders.layout import IMAGE_NAMES, IMAGE_SUFFIXES, MASK_NAMES
from accel_engine.data.folders.mask_classes import MaskClasses
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError
from accel_engine.image_files import ImageHeader, check_image, read_header, read_labels

MASK_SUFFIXES = (".png", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".pbm", ".pnm")
"""Suffixes of masks: JPEG would change their values."""

CLASS_NAMES_FILE = "classes.txt"
"""A file beside the folders that names a class per line, that of value 0 first."""


@dataclass(frozen=True, slots=True)
class MaskPair:
    """The files of an image and its mask."""

    image: str
    mask: str

    def __str__(self) -> str:
        return self.mask


class MaskHeader(NamedTuple):
    """What the headers of an image and its mask tell.

    Attributes:
        image: The image's.
        mask: The mask's.
        fits_shown: Whether the mask has the sides of the image as it is shown.
        fits_stored: Whether it has the sides of the image before this is turned by its EXIF orientation.
    """

    image: ImageHeader
    mask: ImageHeader
    fits_shown: bool
    fits_stored: bool


@dataclass
class MaskForm(FileForm[MaskPair, MaskHeader]):
    """Masks that are turned and resized as their images.

    Attributes:
        shape: Height and width.
        are_stored: Whether masks that fit their images before and after these are turned, are for those before.
        classes: Numbers the values.
    """

    shape: tuple[int, int]
    are_stored: bool
    classes: MaskClasses
    dtype = "uint8"

    @classmethod
    def check(cls, file: MaskPair) -> MaskHeader:
        """The headers of an image and its mask, which seems whole and has the sides of the image."""
        return _header(file, check_image(Path(file.mask)))

    def read(self, file: MaskPair) -> tuple[npt.NDArray[np.uint8], MaskHeader]:
        """The indices of a mask's values, and its header."""
        header = _header(file, read_header(Path(file.mask)))
        orientation = header.image.orientation if self._is_stored(header) else None
        return self.classes.encode(*read_labels(Path(file.mask), self.shape, orientation)), header

    def changes(self, headers: Counter[MaskHeader], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """What is turned and resized."""
        images = sum(count for header, count in headers.items() if header.image.orientation != 1)
        stored = sum(count for header, count in headers.items() if self._is_stored(header))
        resized = sum(count for header, count in headers.items() if self._is_resized(header))
        fit = "they have the sides of their images before these are turned"
        turned = Change("turned", "masks of turned images", stored, images, fit, is_sampled)
        size = "x".join(map(str, self.shape))
        nearest = Change("resized", "masks", resized, headers.total(), f"to {size}, by the nearest pixel", is_sampled)
        return (turned,) * bool(images) + (nearest,) * bool(resized)

    def _is_stored(self, header: MaskHeader) -> bool:
        """Whether a mask is for its image before it is turned, and is turned with it."""
        return header.image.orientation != 1 and header.fits_stored and (self.are_stored or not header.fits_shown)

    def _is_resized(self, header: MaskHeader) -> bool:
        sides = (header.mask.height, header.mask.width)
        swapped = self._is_stored(header) and header.image.orientation >= 5
        return (sides[::-1] if swapped else sides) != self.shape


class MaskFolder(FolderSource[MaskPair]):
    """Images, ``[n, height, width, channels]``, and masks, class indices uint8 ``[n, height, width]``.

    The folder has ``images`` and ``masks``, or ``train``, ``val`` and ``test`` that have these.
    """

    noun = "images"
    targets = "masks"
    suffixes = IMAGE_SUFFIXES
    resizes_images = True

    def describe(self) -> DatasetEntry:
        """Complete the entry with counts and shapes; only reading tells the classes, unless the folder names them."""
        images, masks, seen, pairs = self._forms()
        class_names = _class_names(self.root)
        examples, validation, test = self.splits.counts
        damaged = [pair for pair in pairs.damaged if pair.image not in seen.damaged]
        changes = images.changes(seen.counts, is_sampled=seen.is_sampled)
        spec = Batch(images.spec, masks.spec)
        return replace(
            self.entry,
            shape=images.shape,
            classes=len(class_names) or None,
            examples=examples,
            validation_examples=validation,
            test_examples=test,
            value_range=images.value_range,
            notes=(*self.entry.notes, *self.notes, *seen.notes, *replace(pairs, damaged=tuple(damaged)).notes),
            changes=(*self.left_out, *changes, *masks.changes(pairs.counts, is_sampled=pairs.is_sampled)),
            task="segmentation",
            spec=spec,
            columns=(
                EntryColumn("image", "image", "input", detail=str(spec.inputs)),
                EntryColumn("mask", "mask", "target", missing=0, detail=str(spec.targets)),
            ),
            class_names=class_names,
            samples=tuple((Path(pair.image).name, Path(pair.mask).name) for pair in self.splits.train.files[:3]),
        )

    def load(self, progress: Progress) -> Dataset:
        """Read images and masks into memory if they fit; otherwise they are read as they are needed."""
        images, masks, _, _ = self._forms()
        seen, headers = Counter[ImageHeader](), Counter[MaskHeader]()

        lazy = [
            Split(FileArray([pair.image for pair in part.files], images, seen), FileArray(part.files, masks, headers))
            if part is not None
            else None
            for part in self.splits.each
        ]
        splits, warnings = read_splits(lazy, self.options, progress)
        for split in splits:  # the classes are only known after all masks were decoded
            if split is not None and isinstance(split.targets, FileArray):
                split.targets.read_through(progress)
        class_names, mapped = masks.classes.finish(_class_names(self.root))
        for split in splits:
            if split is not None and isinstance(split.targets, np.ndarray):
                masks.classes.apply(split.targets)
        train, validation, test = splits
        assert train is not None  # noqa: S101 (a folder has training images)
        return Dataset(
            self.entry.name,
            train,
            validation,
            test,
            class_names=class_names,
            task="segmentation",
            kind="images",
            value_range=images.value_range or PIXELS,
            notes=(*self.notes, *mapped),
            changes=(*self.left_out, *images.changes(seen), *masks.changes(headers)),
            warnings=tuple(warnings),
        )

    def _forms(
        self,
    ) -> tuple[ImageForm, MaskForm, FilesSeen[str, ImageHeader], FilesSeen[MaskPair, MaskHeader]]:
        """How images and masks are read, and what some of them are."""
        every = self.splits.files
        seen = look_at([pair.image for pair in every], ImageForm.check, self.options)
        pairs = look_at(every, MaskForm.check, self.options)
        images = ImageForm.of(seen, self.options)
        turned = [header for header in pairs.headers.values() if header.image.orientation != 1]
        stored = sum(header.fits_stored and not header.fits_shown for header in turned)
        shown = sum(header.fits_shown and not header.fits_stored for header in turned)
        return images, MaskForm(images.shape[:2], stored > shown, MaskClasses()), seen, pairs

    def has_targets(self, root: Path) -> bool:
        """Whether a folder has a folder of masks."""
        return None not in _folders(root)

    def find(self, root: Path) -> SplitFiles[MaskPair]:
        """The images below a folder, and their masks.

        Raises:
            DataError: An image has no mask, unless these are skipped; or there are no images.
        """
        image_root, mask_root = _folders(root)
        if image_root is None or mask_root is None:
            raise DataError(f"{root} needs the subfolders {IMAGE_NAMES[0]} and {MASK_NAMES[0]}")
        images, found = self.files_below(image_root, IMAGE_SUFFIXES), self.files_below(mask_root, MASK_SUFFIXES)
        if not images:
            raise self.none_below(image_root, "images", IMAGE_SUFFIXES)
        if not found:
            error = self.none_below(mask_root, "masks", MASK_SUFFIXES)
            raise DataError(f"{error}; other formats would change their values")
        masks = {Path(file).stem: file for file in found}
        names = [Path(file).stem for file in images]
        if len(masks) < len(found) or len({*names}) < len(names):  # equal names in several subfolders
            masks = {_relative(file, mask_root): file for file in found}
            names = [_relative(file, image_root) for file in images]
        pairs = tuple(MaskPair(image, masks[name]) for image, name in zip(images, names, strict=True) if name in masks)
        missing = [image for image, name in zip(images, names, strict=True) if name not in masks]
        if missing:
            problem = f"{len(missing)} of {len(images)} images in {image_root} have no mask of the same name"
            listed = listed_files(missing)
            if self.options.invalid_examples != "skip" or not pairs:
                error = DataError(f"{problem}: {listed}")
                raise or_skip(error) if pairs else error
            why = f"they have no mask of the same name in {mask_root}: {listed}"
            self.left_out.append(Change("left out", "images", len(missing), len(images), why))
        if unused := len({*masks} - {*names}):
            why = f"they have no image of the same name in {image_root}"
            self.left_out.append(Change("left out", "masks", unused, len(masks), why))
        return SplitFiles(pairs)


def _folders(root: Path) -> tuple[Path | None, Path | None]:
    """The folders of images and of masks in a folder."""
    folders = {path.name.lower(): path for path in subfolders(root)}
    images, masks = (
        next((folders[name] for name in names if name in folders), None) for names in (IMAGE_NAMES, MASK_NAMES)
    )
    return images, masks


def _header(pair: MaskPair, mask: ImageHeader) -> MaskHeader:
    """What the header of a mask and its image tell.

    Raises:
        DataError: The mask has other sides than the image.
    """
    image = read_header(Path(pair.image))
    shown = (image.height, image.width)
    stored = shown[::-1] if image.orientation >= 5 else shown
    header = MaskHeader(image, mask, _fits(mask, shown), mask.orientation == 1 and _fits(mask, stored))
    if not header.fits_shown and not header.fits_stored:
        raise DataError(
            f"the mask {pair.mask} has {mask.width} x {mask.height} pixels and its image {pair.image} "
            f"{image.width} x {image.height}: a mask needs the sides of its image, or the same ratio of sides"
        )
    return header


def _fits(mask: ImageHeader, sides: tuple[int, int]) -> bool:
    """Whether a mask has these sides, or their ratio but for a pixel."""
    height, width = sides
    return abs(mask.height * width - mask.width * height) <= max(height, width)


def _relative(file: str, root: Path) -> str:
    return os.path.splitext(os.path.relpath(file, root))[0]


def _class_names(root: Path) -> tuple[str, ...]:
    path = root / CLASS_NAMES_FILE
    try:
        return tuple(line.strip() for line in path.read_text().splitlines() if line.strip()) if path.is_file() else ()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
