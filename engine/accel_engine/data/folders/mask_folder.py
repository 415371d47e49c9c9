"""Describes and loads images with masks, which have a class per pixel."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import Progress, or_skip
from accel_engine.data.dataset import Split
from accel_engine.data.file_kinds import IMAGE_NAMES, IMAGE_SUFFIXES, MASK_NAMES
from accel_engine.data.folders.files import FileArray, FileForm, FilesSeen, listed_files, look_at
from accel_engine.data.folders.folder_source import FolderSource, SplitFiles, subfolders
from accel_engine.data.folders.image_folder import ImageForm
from accel_engine.data.folders.mask_classes import MaskClasses
from accel_engine.data.source import DatasetEntry, EntryColumn
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError
from accel_engine.image_files import ImageHeader, check_image, read_header, read_labels

MASK_SUFFIXES = (".png", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".pbm", ".pnm")
"""Suffixes of masks: JPEG would change their values."""

CLASS_NAMES_FILE = "classes.txt"
"""A file beside the folders that names a class per line, the class of value 0 first."""


@dataclass(frozen=True, slots=True)
class MaskPair:
    """The files of an image and its mask."""

    image: str
    mask: str

    def __str__(self) -> str:
        return self.mask


class MaskHeader(NamedTuple):
    """The headers of an image and its mask."""

    image: ImageHeader
    mask: ImageHeader
    fits_shown: bool
    """Whether the mask has the sides of the image as it is shown."""
    fits_stored: bool
    """Whether it has the sides of the image before this is turned by its EXIF orientation."""


@dataclass
class MaskForm(FileForm[MaskPair, MaskHeader]):
    """Masks that are turned and resized as their images."""

    shape: tuple[int, int]
    """Height and width."""
    are_stored: bool
    """Whether masks that fit their images both before and after these are turned are for the images before."""
    classes: MaskClasses
    """The number of each value."""
    others: frozenset[MaskPair] = frozenset()
    """Files that have no say in what the classes are."""
    dtype = "uint8"

    @classmethod
    def check(cls, file: MaskPair) -> MaskHeader:
        """The headers of an image and its mask, which seems whole and has the sides of the image."""
        return _header(file, check_image(Path(file.mask)))

    def read(self, file: MaskPair) -> tuple[npt.NDArray[np.uint8], MaskHeader]:
        """The indices of a mask's values, and its header."""
        header = _header(file, read_header(Path(file.mask)))
        orientation = header.image.orientation if self._is_stored(header) else None
        colours, palette = read_labels(Path(file.mask), self.shape, orientation)
        return self.classes.encode(colours, palette, file.mask if file in self.others else ""), header

    def changes(self, headers: Counter[MaskHeader], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """Notes on images and masks that are turned and resized."""
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


_Looks: TypeAlias = tuple[
    tuple[FilesSeen[str, ImageHeader], ImageForm], tuple[FilesSeen[MaskPair, MaskHeader], MaskForm]
]


class MaskFolder(FolderSource[MaskPair]):
    """Images, ``[n, height, width, channels]``, and masks, class indices uint8 ``[n, height, width]``.

    The folder has ``images`` and ``masks``, or ``train``, ``val`` and ``test`` that have these.
    """

    task = "segmentation"
    noun = "images"
    targets = "masks"
    suffixes = IMAGE_SUFFIXES
    resizes_images = True

    @cached_property
    def looks(self) -> "_Looks":
        """The headers of some images and masks, and the form in which all are read."""
        every = self.form_files
        seen = look_at([pair.image for pair in every], ImageForm.check, self.options)
        pairs = look_at(every, MaskForm.check, self.options)
        images = ImageForm.of(seen, self.options)
        turned = [header for header in pairs.headers.values() if header.image.orientation != 1]
        stored = sum(header.fits_stored and not header.fits_shown for header in turned)
        shown = sum(header.fits_shown and not header.fits_stored for header in turned)
        damaged = tuple(pair for pair in pairs.damaged if pair.image not in seen.damaged)
        others = frozenset(self.splits["validation"].files).difference(every) if self.options.keeps_split else ()
        masks = MaskForm(images.shape[:2], stored > shown, MaskClasses(), frozenset(others))
        return (seen, images), (replace(pairs, damaged=damaged), masks)

    def files_of(self, examples: SplitFiles[MaskPair]) -> Sequence[Sequence[Any]]:
        """The images of some examples, and their masks."""
        return [pair.image for pair in examples.files], examples.files

    def describe(self) -> DatasetEntry:
        """Complete the entry with counts and shapes; only reading tells the classes, unless the folder names them."""
        (_, images), (_, masks) = self.looks
        class_names = _class_names(self.root)
        return replace(
            super().describe(),
            classes=len(class_names) or None,
            spec=Batch(images.spec, masks.spec),
            columns=(
                EntryColumn("image", "image", "input", detail=str(images.spec)),
                EntryColumn("mask", "mask", "target", missing=0, detail=str(masks.spec)),
            ),
            class_names=class_names,
            samples=tuple((Path(pair.image).name, Path(pair.mask).name) for pair in self.splits["train"].files[:3]),
        )

    def finish(self, splits: Mapping[str, Split], progress: Progress) -> tuple[str, ...]:
        """Number the classes, which are only known after all masks were decoded."""
        masks, form = [split.targets for split in splits.values()], self.looks[1][1]
        classes = form.classes
        for each in masks:
            if isinstance(each, FileArray):
                each.read_through(progress)
        if self.options.keeps_split and (replaced := self._own_splits.get("validation")):
            for pair in replaced.files:  # their values are classes, too
                with suppress(DataError):  # it was left out of the training
                    form.read(pair)
        class_names, notes = classes.finish(_class_names(self.root))
        self.notes += notes
        for each in masks:
            if isinstance(each, np.ndarray):
                classes.apply(each)
        return class_names

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
    """Join the headers of a mask and its image.

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
