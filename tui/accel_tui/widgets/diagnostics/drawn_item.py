"""Draws what a script logged, in a thread: a large image takes 0.1 s."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from rich.style import Style
from textual.strip import Strip

from accel_engine.run.media import Histogram, LoggedImage, LoggedText
from accel_engine.text import printable
from accel_tui.appearance.colour_scales import Colour
from accel_tui.run_state.diagnostics import ChosenItem
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot
from accel_tui.widgets.diagnostics.pixels import Pixels, draw_image, size_within

_LARGEST = 1e300  # of the edges and counts that are drawn; beyond, their differences may overflow
_SMALLEST = 1e-290  # the same of their quotients
_NARROWEST = 1e-9  # range of a histogram relative to its values; below, labels of an axis would be equal


@dataclass(frozen=True, slots=True)
class Surface:
    """Where and how an item is drawn.

    Attributes:
        columns: Width in cells.
        lines: Height.
        blocks: Whether the terminal shows half blocks in colour.
        dark: Whether the theme is dark.
        background: Colour behind an image.
        style: Style of shading characters.
    """

    columns: int
    lines: int
    blocks: bool
    dark: bool
    background: Colour
    style: Style


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item, prepared for the screen.

    Attributes:
        logged: The item, its text printable.
        surface: For which it is drawn.
        strips: Of an image.
        plot: The bars of a histogram, unless their range cannot be drawn.
        frame: The drawing of :attr:`plot`.
    """

    logged: ChosenItem
    surface: Surface
    strips: tuple[Strip, ...] = ()
    plot: Plot | None = None
    frame: Frame | None = None


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
    if height > 2 * lines:  # row by row, as NumPy keeps other threads from running while it adds
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
    )


def _plot_of(histogram: Histogram) -> Plot | None:
    if not len(histogram.counts):
        return None
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    size, highest = max(abs(low), abs(high)), float(histogram.counts.max())
    if max(size, highest) > _LARGEST or high - low <= max(_NARROWEST * size, _SMALLEST) or 0 < highest < _SMALLEST:
        return None
    return Plot("values per bin", (PlotSeries(histogram.edges, histogram.counts, "bars"),))
