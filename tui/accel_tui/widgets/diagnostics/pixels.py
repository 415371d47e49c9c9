"""Draws small images in the cells of a terminal: two pixels a cell, or shading characters without colours."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accel_tui.appearance import colour_scales

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
    background: colour_scales.Colour,
    style: Style,
    smooth: bool = True,
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
        smooth: Whether pixels are averaged where there are fewer cells; else one of them is taken, as of a mask.
    """
    pixels = _solid(image, background)
    if blocks:
        return _halves(_scaled(pixels, columns, 2 * lines, smooth=smooth))
    return _shaded(_scaled(pixels, columns, lines, smooth=smooth), style, dark=dark)


def size_within(image: Pixels, columns: int, lines: int) -> tuple[int, int]:
    """Width and height in cells of an image as large as fits, with its proportions."""
    height, width = image.shape[:2]
    scale = min(columns / width, 2 * lines / height)
    return max(1, min(columns, round(width * scale))), max(1, min(lines, round(height * scale / 2)))


def _solid(image: Pixels, background: colour_scales.Colour) -> npt.NDArray[Any]:
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
    scaled: Pixels = np.rint(pixels).astype(np.uint8)
    return scaled


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
    steps = np.rint((light if dark else 1 - light) * (len(colour_scales.SHADES) - 1)).astype(int)
    return [Strip([Segment("".join(colour_scales.SHADES[step] for step in row), style)]) for row in steps.tolist()]


def draw_classes(classes: Pixels, columns: int, lines: int, style: Style) -> list[Strip]:
    """A mask ``[height, width]`` as a digit or letter per class, for terminals without colours."""
    found = _scaled(classes[:, :, np.newaxis], columns, lines, smooth=False)[:, :, 0]
    return [
        Strip([Segment("".join(CLASS_SIGNS[index % len(CLASS_SIGNS)] for index in row), style)])
        for row in found.tolist()
    ]
