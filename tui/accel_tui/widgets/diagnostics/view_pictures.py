"""Pictures of views: images, masks in the colours of their classes, and spectrograms."""

import colorsys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rich.color import Color as RichColor
from rich.style import Style

from accel_engine.run.diagnostics import Example, OutputReport, SegmentationReport
from accel_engine.run.diagnostics.views import Image, Mask, Spectrogram, View
from accel_tui.appearance.colour_scales import Colour
from accel_tui.widgets.diagnostics.examples import leaves
from accel_tui.widgets.diagnostics.pixels import CLASS_SIGNS, Pixels

NO_CLASS = 255
"""Class of a pixel without one."""

_CLASS_COLOURS: tuple[Colour, ...] = (
    (90, 90, 100),
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
)
"""The first is often the background; the others are those of Okabe and Ito, "Color Universal Design", 2008."""

_LOUDNESS = np.array([(8, 6, 30), (85, 20, 125), (185, 55, 120), (250, 140, 95), (252, 250, 190)], np.float64)

_BLEND = 0.55  # share of the mask's colour

_LegendSpan = tuple[str, Style | None]
"""Text and its style; ``None`` for plain text."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewPicture:
    """A picture of a view.

    Attributes:
        pixels: uint8 ``[height, width, channels]``.
        mask: The classes of its pixels, for terminals without colours; ``None`` if it is no mask.
    """

    pixels: Pixels
    mask: Pixels | None = None


def picture_of(view: View) -> ViewPicture | None:
    """The picture of a view; ``None`` if it is no picture."""
    match view:
        case Image(pixels):
            return ViewPicture(pixels)
        case Mask(classes):
            return ViewPicture(_palette()[classes], classes)
        case Spectrogram(levels):
            return ViewPicture(_loudness()[levels[::-1]])
    return None


def pictures_of(example: Example, *, blended: bool = False) -> tuple[ViewPicture, ...]:
    """The pictures of an example: of its input, target and output.

    Args:
        example: The example.
        blended: Whether masks are drawn over the input.
    """
    views = [leaf for view in (example.input, example.target, example.output) for leaf in leaves(view)]
    found = tuple(picture for view in views if (picture := picture_of(view)) is not None)
    if blended and found and found[0].mask is None:
        return tuple(_blended(found[0].pixels, each) if each.mask is not None else each for each in found)
    return found


def picture_names(example: Example) -> tuple[str, ...]:
    """Names of the pictures of :func:`pictures_of`."""
    named = (("input", example.input), ("true", example.target), ("predicted", example.output))
    return tuple(name for name, view in named for leaf in leaves(view) if picture_of(leaf) is not None)


@lru_cache(256)
def class_colour(index: int) -> Colour:
    """The colour of a class in a mask."""
    if index < len(_CLASS_COLOURS):
        return _CLASS_COLOURS[index]
    # Hues by the golden ratio, so that consecutive classes differ.
    red, green, blue = colorsys.hsv_to_rgb(index * 0.618034 % 1, 0.55 + 0.15 * (index % 3), 0.65 + 0.3 * (index % 2))
    return round(255 * red), round(255 * green), round(255 * blue)


@lru_cache(1)
def _palette() -> Pixels:
    """Colours of classes with transparency, ``[256, 4]``."""
    colours = [(*class_colour(index), 255) for index in range(NO_CLASS)]
    return np.array([*colours, (0, 0, 0, 0)], np.uint8)


@lru_cache(1)
def _loudness() -> Pixels:
    """Colours of levels, ``[256, 3]``."""
    positions = np.linspace(0, len(_LOUDNESS) - 1, 256)
    channels = [np.interp(positions, np.arange(len(_LOUDNESS)), channel) for channel in _LOUDNESS.T]
    colours: Pixels = np.rint(np.stack(channels, axis=1)).astype(np.uint8)
    return colours


def _blended(image: Pixels, picture: ViewPicture) -> ViewPicture:
    """A mask drawn over an image; the pixels of the mask are those that are kept."""
    height, width = picture.pixels.shape[:2]
    rows, columns = (np.arange(side) * of // side for side, of in zip((height, width), image.shape[:2], strict=True))
    below = image[rows][:, columns][:, :, :3].astype(np.float64)
    colours = picture.pixels.astype(np.float64)
    share = _BLEND * colours[:, :, 3:] / 255
    mixed = np.broadcast_to(below, colours[:, :, :3].shape) * (1 - share) + colours[:, :, :3] * share
    return ViewPicture(np.rint(mixed).astype(np.uint8), picture.mask)


def mask_legend(report: OutputReport, width: int, *, blocks: bool) -> list[_LegendSpan] | None:
    """The colours and names of as many classes as fit; ``None`` if the report has no masks.

    Args:
        report: The report.
        width: In cells.
        blocks: Whether masks are drawn in colours; else the signs of classes are named.
    """
    if not isinstance(report, SegmentationReport):
        return None
    spans: list[_LegendSpan] = []
    for index, name in enumerate(report.names):
        sign, style = CLASS_SIGNS[index % len(CLASS_SIGNS)], None
        if blocks:
            sign, style = "██", Style(color=RichColor.from_rgb(*class_colour(index)))
        entry: list[_LegendSpan] = [(sign, style), (f" {name}   ", None)]
        more = f"and {len(report.names) - index} more"
        if sum(len(text) for text, _ in [*spans, *entry]) + (len(more) if index + 1 < len(report.names) else 0) > width:
            return [*spans, (more, None)]
        spans += entry
    return spans
