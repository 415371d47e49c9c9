"""Describes and loads images in a folder per class."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change, Verb
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.file_kinds import IMAGE_SUFFIXES
from accel_engine.data.folders.class_source import ClassFileForm, ClassFolderSource
from accel_engine.data.folders.files import THREADS, FilesSeen, read_in_threads
from accel_engine.data.pixel_scaling import PIXELS, ValueRange
from accel_engine.data.source import parse_size
from accel_engine.errors import DataError
from accel_engine.image_files import ImageHeader, changes_of, check_image, read_pixels

DEEP_PIXELS = ValueRange("uint16", 65_535, pixels=True)
"""Declared pixels of 16-bit images."""

_DARK = 0.1
"""Share of the range that images use at least, unless most bits are unused."""


@dataclass
class ImageForm(ClassFileForm[ImageHeader]):
    """Images that are resized and converted to one shape."""

    shape: tuple[int, int, int]
    """Height, width and channels."""
    dtype: str
    """uint8, or uint16 with values up to 65535."""
    reason: str
    """Why they are resized."""

    @classmethod
    def of(cls, seen: FilesSeen[str, ImageHeader], options: DataOptions) -> Self:
        """The size that the plan says, or the most common one; the most channels that an image has.

        Grey images get 16 bits if one of them has these; colours get 8.

        Raises:
            PlanError: The size is invalid.
        """
        headers = seen.counts
        channels = max(header.channels for header in headers)
        bits = max(header.bits for header in headers) if channels == 1 else 8
        if options.image_size is not None:
            size, reason = parse_size(options.image_size), ""
        else:
            size, reason = common_size(headers), ", the most common size (change it with image_size)"
        return cls((*size, channels), f"uint{bits}", reason)

    def __post_init__(self) -> None:
        self.value_range = PIXELS if self.dtype == "uint8" else DEEP_PIXELS

    @classmethod
    def check(cls, file: str) -> ImageHeader:
        """The header of an image that seems whole."""
        return check_image(Path(file))

    def read(self, file: str) -> tuple[npt.NDArray[Any], ImageHeader]:
        """The pixels of an image, and its header."""
        return read_pixels(Path(file), self.shape, np.dtype(self.dtype))

    def changes(self, headers: Counter[ImageHeader], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """Notes on images that are turned, resized and converted."""
        return image_changes(headers, self.shape, self.dtype, self.reason, is_sampled=is_sampled)


def common_size(headers: Mapping[ImageHeader, int]) -> tuple[int, int]:
    """The most common height and width of images, by the number of images with each header."""
    sizes = Counter[tuple[int, int]]()
    for header, count in headers.items():
        sizes[header.height, header.width] += count
    return sizes.most_common(1)[0][0]


def image_changes(
    headers: Counter[ImageHeader],
    shape: tuple[int, int, int],
    dtype: str,
    reason: str = "",
    *,
    is_sampled: bool = False,
) -> tuple[Change, ...]:
    """The changes by reading images with these headers, and their numbers."""
    found = Counter[tuple[Verb, str]]()
    for header, count in headers.items():
        for change in changes_of(header, shape, dtype):
            found[change] += count
    return tuple(
        Change(verb, "images", count, headers.total(), detail + reason * (verb == "resized"), is_sampled)
        for (verb, detail), count in sorted(found.items())
    )


class ImageDecoder:
    """Decodes images in memory, in threads.

    Args:
        shape: Height, width and channels to which they are brought.
        dtype: uint8, or uint16 with values up to 65535.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str = "uint8") -> None:
        height, width, channels = shape
        self._read = partial(read_pixels, shape=(height, width, channels), dtype=np.dtype(dtype))

    def __call__(self, contents: Sequence[bytes]) -> dict[int, npt.NDArray[Any]]:
        """Decode images: the pixels of each, ``[height, width, channels]``, by its place, but for damaged ones."""
        found = read_in_threads(self._read, contents, max(1, len(contents) // THREADS), None)
        return {place: each[0] for place, (_, each) in enumerate(found) if not isinstance(each, DataError)}


class ImageFolder(ClassFolderSource):
    """Images in a folder per class, ``[n, height, width, channels]``.

    They are uint8, or uint16 if all are grey and one has 16 bits.
    """

    suffixes = IMAGE_SUFFIXES
    noun = "images"
    column = "image"
    form_type = ImageForm
    resizes_images = True

    def load(self, progress: Progress) -> Dataset:
        """Read the images into memory if they fit; otherwise they are read when they are needed."""
        dataset = super().load(progress)
        return replace(dataset, notes=(*dataset.notes, *_dark_notes(dataset)))


def _dark_notes(dataset: Dataset) -> tuple[str, ...]:
    """A note on 16 bits of which most are not used, such as from cameras with 12 bits."""
    pixels = dataset.train.inputs if isinstance(dataset.train, Split) else None
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint16 or pixels.max() >= _DARK * 65_535:
        return ()
    return (f"images of 16 bits have values only up to {pixels.max():,}, although uint16 goes up to 65,535",)
