"""Describes and loads images in a folder per class."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change, Verb
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import parse_size
from accel_engine.data.folders.class_source import ClassFolderSource
from accel_engine.data.folders.files import FileForm, FilesSeen
from accel_engine.data.folders.layout import IMAGE_SUFFIXES
from accel_engine.data.pixel_scaling import PIXELS, ValueRange
from accel_engine.image_files import ImageHeader, check_image, read_pixels

DEEP_PIXELS = ValueRange("uint16", 65_535, pixels=True)
"""Declared pixels of 16-bit images."""


@dataclass
class ImageForm(FileForm[ImageHeader]):
    """Images that are resized and converted to one shape.

    Attributes:
        shape: Height, width and channels.
        dtype: uint8, or uint16 with values up to 65535.
        reason: Why they are resized.
    """

    shape: tuple[int, int, int]
    dtype: str
    reason: str

    @classmethod
    def of(cls, seen: FilesSeen[ImageHeader], options: DataOptions) -> "ImageForm":
        """The size that the plan says, or the most common one; as many channels and bits as one of the images has.

        Raises:
            PlanError: The size is invalid.
        """
        headers = seen.counts
        channels, bits = (max(getattr(header, name) for header in headers) for name in ("channels", "bits"))
        sizes = Counter[tuple[int, int]]()
        for header, count in headers.items():
            sizes[header.height, header.width] += count
        if options.image_size is not None:
            size, reason = parse_size(options.image_size), ""
        else:
            size, reason = sizes.most_common(1)[0][0], ", the most common size (change it with image_size)"
        return cls((*size, channels), f"uint{bits}", reason)

    @property
    def value_range(self) -> ValueRange:
        """The range of the pixels."""
        return PIXELS if self.dtype == "uint8" else DEEP_PIXELS

    def check(self, file: str) -> ImageHeader:
        """The header of an image that seems whole."""
        return check_image(Path(file))

    def read(self, file: str) -> tuple[npt.NDArray[Any], ImageHeader]:
        """The pixels of an image, and its header."""
        return read_pixels(Path(file), self.shape, np.dtype(self.dtype))

    def changes(self, headers: Counter[ImageHeader], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """What is turned, resized and converted."""
        return image_changes(headers, self.shape, self.dtype, self.reason, is_sampled=is_sampled)


def image_changes(
    headers: Counter[ImageHeader], shape: tuple[int, int, int], dtype: str, reason: str = "", *, is_sampled: bool = False
) -> tuple[Change, ...]:
    """What reading images with these headers changes, and in how many."""
    found = Counter[tuple[Verb, str]]()
    for header, count in headers.items():
        for change in _changes(header, shape, dtype):
            found[change] += count
    return tuple(
        Change(verb, "images", count, headers.total(), detail + reason * (verb == "resized"), is_sampled)
        for (verb, detail), count in found.items()
    )


def _changes(header: ImageHeader, shape: tuple[int, int, int], dtype: str) -> list[tuple[Verb, str]]:
    height, width, channels = shape
    found: list[tuple[bool, Verb, str]] = [
        (header.orientation != 1, "turned", "as their EXIF orientation says"),
        (header.has_frames, "cut", "to the first of their frames"),
        (header.mode == "CMYK", "converted", "from CMYK to RGB"),
        (header.has_opacity, "converted", "white where they are transparent"),
        (header.is_cut or (header.bits == 16 and dtype == "uint8"), "converted", "from 16 to 8 bits a channel"),
        (header.bits == 8 and dtype == "uint16", "converted", "from 8 to 16 bits a channel"),
        (header.channels > channels, "converted", "from colours to grey"),
        (header.channels < channels, "converted", "from grey to three equal channels"),
        ((header.height, header.width) != (height, width), "resized", f"to {height}x{width}"),
    ]
    return [(verb, detail) for applies, verb, detail in found if applies]


class ImageFolder(ClassFolderSource):
    """Images in a folder per class: uint8, or uint16 if one has grey of 16 bits, ``[n, height, width, channels]``."""

    suffixes = IMAGE_SUFFIXES
    noun = "images"
    column = "image"
    is_resized = True

    def check(self, file: str) -> ImageHeader:
        """The header of an image that seems whole."""
        return check_image(Path(file))

    def form(self, seen: FilesSeen[ImageHeader]) -> ImageForm:
        """The shape to which images are brought."""
        return ImageForm.of(seen, self.options)
