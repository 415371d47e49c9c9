"""Draws pictures in the cells of a terminal: images, masks and spectrograms of examples, and what a script logged."""

import colorsys
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accel_engine.run.diagnostics import Example, OutputReport, SegmentationReport
from accel_engine.run.diagnostics.views import Image, Mask, Spectrogram, View
from accel_engine.run.media import Histogram, LoggedImage, LoggedText
from accel_engine.text import printable
from accel_tui.appearance import colours
from accel_tui.appearance.colours import Colour
from accel_tui.run_state.diagnostics import ChosenItem
from accel_tui.terminal.pixel_images import PixelImages
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot
from accel_tui.widgets.diagnostics.examples import leaves

Pixels = npt.NDArray[np.uint8]

CLASS_SIGNS = ".123456789abcdefghijklmnopqrstuvwxyz"
"""Signs of classes in masks without colours; the first class is often the background."""


def draw_image(
    image: Pixels,
    columns: int,
    lines: int,
    *,
    blocks: bool,
    dark: bool,
    background: colours.Colour,
    style: Style,
    smooth: bool = True,
    images: PixelImages | None = None,
) -> list[Strip]:
    """Draw an image.

    Args:
        image: uint8 ``[height, width, channels]`` with 1, 3 or 4 channels.
        columns: Width in cells.
        lines: Height in cells.
        blocks: Whether the terminal shows half blocks in colour; else shading characters are drawn.
        dark: Whether the theme is dark.
        background: Colour behind a transparent image.
        style: Style of shading characters.
        smooth: Whether pixels are averaged where there are fewer cells; if not, one of them is taken, as for a mask.
        images: Shows it in real pixels, if the terminal has them.
    """
    if images and (strips := images.strips(image, columns, lines, smooth=smooth)) is not None:
        return strips
    pixels = _solid(image, background)
    if blocks:
        return _halves(_scaled(pixels, columns, 2 * lines, smooth=smooth))
    return _shaded(_scaled(pixels, columns, lines, smooth=smooth), style, dark=dark)


def size_within(image: Pixels, columns: int, lines: int) -> tuple[int, int]:
    """Width and height in cells of an image as large as fits, with its proportions."""
    height, width = image.shape[:2]
    scale = min(columns / width, 2 * lines / height)
    return max(1, min(columns, round(width * scale))), max(1, min(lines, round(height * scale / 2)))


def _solid(image: Pixels, background: colours.Colour) -> npt.NDArray[Any]:
    """An image in RGB, blended with the background where it is transparent."""
    pixels = image.astype(np.float32)
    if image.shape[2] == 4:
        alpha = pixels[:, :, 3:] / 255
        return pixels[:, :, :3] * alpha + np.array(background, np.float32) * (1 - alpha)
    return np.repeat(pixels, 3, axis=2) if image.shape[2] == 1 else pixels


def _scaled(pixels: npt.NDArray[Any], width: int, height: int, *, smooth: bool) -> Pixels:
    """An image resized: means of pixels when smaller, nearest neighbour when larger."""
    for axis, target in ((0, height), (1, width)):
        side = pixels.shape[axis]
        edges = np.arange(target) * side // target
        if target >= side or not smooth:
            pixels = pixels.take(edges, axis=axis)
        else:
            lengths = np.diff(np.append(edges, side)).reshape(-1, *(1,) * (2 - axis))
            pixels = np.add.reduceat(pixels, edges, axis=axis) / lengths
    return np.rint(pixels).astype(np.uint8)


@lru_cache(1 << 16)
def _colour(value: int) -> RichColor:
    return RichColor.from_rgb(value >> 16, value >> 8 & 255, value & 255)


@lru_cache(1 << 14)
def _pair(top: int, bottom: int) -> Segment:
    return Segment("▀", Style.from_color(_colour(top), _colour(bottom)))


def _halves(pixels: Pixels) -> list[Strip]:
    """An image in half blocks: upper pixels as foreground, lower ones as background."""
    values = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    return [
        Strip([_pair(top, bottom) for top, bottom in zip(upper, lower, strict=True)], len(upper))
        for upper, lower in zip(values[::2].tolist(), values[1::2].tolist(), strict=True)
    ]


def _shaded(pixels: Pixels, style: Style, *, dark: bool) -> list[Strip]:
    """An image in shading characters; on a dark terminal denser is lighter."""
    light = pixels.mean(axis=2) / 255
    steps = np.rint((light if dark else 1 - light) * (len(colours.SHADES) - 1)).astype(int)
    return [Strip([Segment("".join(colours.SHADES[step] for step in row), style)]) for row in steps.tolist()]


def draw_classes(classes: Pixels, columns: int, lines: int, style: Style) -> list[Strip]:
    """A mask ``[height, width]`` as a sign of :data:`CLASS_SIGNS` per class, for terminals without colours."""
    found = _scaled(classes[:, :, np.newaxis], columns, lines, smooth=False)[:, :, 0]
    return [
        Strip([Segment("".join(CLASS_SIGNS[index % len(CLASS_SIGNS)] for index in row), style)])
        for row in found.tolist()
    ]


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
"""The first is often the background; the others are from Okabe and Ito, "Color Universal Design", 2008."""

_SILENCE = (8, 6, 30)

_BLEND = 0.55  # share of the mask's colour

_LegendSpan = tuple[str, Style | None]
"""Text and its style; ``None`` for plain text."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewPicture:
    """A picture of a view."""

    pixels: Pixels
    """uint8 ``[height, width, channels]``."""
    mask: Pixels | None = None
    """The classes of its pixels, for terminals without colours; ``None`` if it is not a mask."""


def picture_of(view: View) -> ViewPicture | None:
    """The picture of a view; ``None`` if it is not a picture."""
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
    shares = [(level / 255) ** 2 for level in range(256)]  # equal steps on the scale
    return np.array([colours.scale_colour(each, colours.INCORRECT, _SILENCE, dark=True) for each in shares], np.uint8)


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
        if (
            sum(cell_len(text) for text, _ in [*spans, *entry]) + (len(more) if index + 1 < len(report.names) else 0)
            > width
        ):
            return [*spans, (more, None)]
        spans += entry
    return spans


_LARGEST = 1e300  # of the edges and counts that are drawn; beyond, their differences may overflow
_SMALLEST = 1e-290  # the same of their quotients
_NARROWEST = 1e-9  # range of a histogram relative to its values; below, labels of an axis would be equal


@dataclass(frozen=True, slots=True)
class Surface:
    """Where and how an item is drawn."""

    columns: int
    """Width in cells."""
    lines: int
    """Height."""
    blocks: bool
    """Whether the terminal shows half blocks in colour."""
    dark: bool
    """Whether the theme is dark."""
    background: Colour
    """Colour behind an image."""
    style: Style
    """Style of shading characters."""
    images: PixelImages | None = None
    """Shows images in real pixels, if the terminal has them."""


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item, prepared for the screen."""

    logged: ChosenItem
    """The item, its text printable."""
    surface: Surface
    """The surface that it is drawn for."""
    strips: tuple[Strip, ...] = ()
    """Lines of an image."""
    plot: Plot | None = None
    """The bars of a histogram, unless their range cannot be drawn."""
    frame: Frame | None = None
    """The drawing of :attr:`plot`."""


def draw_item(logged: ChosenItem, surface: Surface) -> DrawnItem:
    """Draw an image or a histogram, or make a text printable."""
    match logged.item:
        case LoggedImage(pixels):
            return DrawnItem(logged, surface, tuple(_draw_image(pixels, surface)))
        case LoggedText(text, note):
            return DrawnItem(replace(logged, item=LoggedText(printable(text), note)), surface)
        case Histogram() as histogram if plot := _plot_of(histogram):
            return DrawnItem(logged, surface, plot=plot, frame=draw_plot(plot, surface.columns, surface.lines))
    return DrawnItem(logged, surface)


def _draw_image(pixels: Pixels, surface: Surface) -> list[Strip]:
    columns, lines = size_within(pixels, surface.columns, surface.lines)
    height, width = pixels.shape[:2]
    if (scale := columns // width) > 1:  # all pixels of one size
        columns, lines = scale * width, -(-scale * height // 2)
    if height > 2 * lines and not surface.images:  # row by row, as NumPy keeps other threads waiting while it adds
        edges = (np.arange(2 * lines + 1) * height // (2 * lines)).tolist()
        rows = [pixels[first:last].mean(axis=0) for first, last in pairwise(edges)]
        pixels = np.rint(rows).astype(np.uint8)
    return draw_image(
        pixels,
        columns,
        lines,
        blocks=surface.blocks,
        dark=surface.dark,
        background=surface.background,
        style=surface.style,
        images=surface.images,
    )


def _plot_of(histogram: Histogram) -> Plot | None:
    if not len(histogram.counts):
        return None
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    size, highest = max(abs(low), abs(high)), float(histogram.counts.max())
    if max(size, highest) > _LARGEST or high - low <= max(_NARROWEST * size, _SMALLEST) or 0 < highest < _SMALLEST:
        return None
    return Plot("values per bin", (PlotSeries(histogram.edges, histogram.counts, "bars"),))
