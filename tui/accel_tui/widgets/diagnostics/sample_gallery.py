"""Validation images as the terminal can show them, the most wrong first, with what the model says of each."""

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import EvaluationReport, SamplePrediction
from accel_tui.appearance import colour_scales
from accel_tui.formatting import units
from accel_tui.widgets.text_page import TextPage, fitted

WIDTHS = (12, 16, 24, 32, 48, 64)
"""Cells that a picture may be wide."""

GAP = 2
"""Cells between two pictures."""

_WORDS = 2  # lines below a picture
_SOME = 8  # pictures that a page should have
_HUGE = 3  # cells for a pixel

_AT_ONCE = 0.004  # seconds for pictures before keys are looked at; to paint them takes as long again

Pixels = npt.NDArray[np.uint8]


class SampleGallery(TextPage):
    """Pages of pictures, which come a few at a time: a large page takes a fifth of a second."""

    BINDING_GROUP_TITLE = "Pictures"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,pagedown,down", "turn(1)", "Next", id="gallery.next", tooltip="Turn to the next page"),
        Binding("left,pageup,up", "turn(-1)", "Before", id="gallery.before", tooltip="Turn to the page before"),
        Binding("home", "turn(-1000)", show=False, id="gallery.home", tooltip="Turn to the first page"),
        Binding("end", "turn(1000)", show=False, id="gallery.end", tooltip="Turn to the last page"),
        Binding(
            "ampersand",
            "filter",
            "Only wrong",
            id="gallery.filter",
            tooltip="Show only what is wrong, or all that is kept",
        ),
        Binding(
            "plus,equals_sign", "size(1)", "Larger", show=False, id="gallery.larger", tooltip="Make pictures larger"
        ),
        Binding("minus", "size(-1)", "Smaller", show=False, id="gallery.smaller", tooltip="Make pictures smaller"),
    ]

    examined: reactive[EvaluationReport | None] = reactive(None, repaint=False)
    """What the last validation found."""

    step: reactive[int] = reactive(0, repaint=False)
    """After which step."""

    turned: reactive[int] = reactive(0, repaint=False)
    """The page, from 0."""

    only_wrong: reactive[bool] = reactive(False, repaint=False)
    """Whether what is right is left out."""

    wide: reactive[int | None] = reactive(None, repaint=False)
    """Which of :data:`WIDTHS` pictures have; ``None`` for what fits them."""

    _pages = 1

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        self._drawn: dict[int, list[Strip]] = {}
        self._drawn_for: object = None
        self._missing: dict[int, Region] = {}
        super().__init__(id=id)

    def watch_examined(self) -> None:
        """Show what is new."""
        self.again()

    def watch_turned(self) -> None:
        """Show another page."""
        self.again()

    def watch_only_wrong(self) -> None:
        """Begin anew."""
        self.turned = 0
        self.again()

    def watch_wide(self) -> None:
        """Show pictures of another size."""
        self.turned = 0
        self.again()

    def action_turn(self, pages: int) -> None:
        """Turn pages."""
        last = self._pages - 1  # fewer than were turned, where there is more room now or less is wrong
        self.turned = min(max(min(self.turned, last) + pages, 0), last)

    def action_filter(self) -> None:
        """Show only what is wrong, or all."""
        self.only_wrong = not self.only_wrong

    def action_size(self, step: int) -> None:
        """Make pictures larger or smaller."""
        now = self._fitting() if self.wide is None else self.wide
        self.wide = min(max(now + step, 0), len(WIDTHS) - 1)

    def on_mouse_scroll_down(self) -> None:
        """Turn to the next page."""
        self.action_turn(1)

    def on_mouse_scroll_up(self) -> None:
        """Turn to the page before."""
        self.action_turn(-1)

    def page(self, width: int, height: int) -> Iterator[Strip]:
        """What is shown, in a line, then the pictures of this page."""
        examined = self.examined
        if examined is None or not examined.worst or height < 4:
            return
        chosen = [index for index, judged in enumerate(examined.worst) if not (self.only_wrong and judged.correct)]
        if examined.pictures is None:
            yield from self._without_pictures(examined, chosen, height)
            return
        columns, lines = self._tile(examined.pictures, width, height - 1)
        across = max(1, (width + GAP) // (columns + GAP))
        down = max(1, height // (lines + _WORDS + 1))
        head, here = self._turn(examined, chosen, across * down)
        yield head
        made_for = (examined, columns, lines, self.ground, self.has_blocks, self.is_dark)
        if made_for != self._drawn_for:
            self._drawn, self._drawn_for = {}, made_for
        self._missing = {
            index: Region(place % across * (columns + GAP), 1 + place // across * (lines + _WORDS + 1), columns, lines)
            for place, index in enumerate(here)
            if index not in self._drawn
        }
        if self._missing:
            self.call_later(self._draw_some, examined, self._drawn)
        empty = [Strip.blank(columns, self.rich_style)] * lines
        for first in range(0, len(here), across):
            tiles = [
                [*self._drawn.get(index, empty), *self._caption(examined, examined.worst[index], columns)]
                for index in here[first : first + across]
            ]
            for parts in zip(*tiles, strict=True):
                yield Strip.join([part.adjust_cell_length(columns + GAP, self.rich_style) for part in parts])
            yield Strip.blank(0)

    def _draw_some(self, examined: EvaluationReport, drawn: dict[int, list[Strip]]) -> None:
        """Draw pictures that the page lacks, as many as can be done at once; the page asks for the others."""
        until = time.perf_counter() + _AT_ONCE
        regions = []
        while drawn is self._drawn and self._missing and time.perf_counter() < until:
            index = next(iter(self._missing))
            region = self._missing.pop(index)
            drawn[index] = self._picture(examined, index, region.width, region.height)
            regions.append(region)
        if regions:
            self._page = None
            self.refresh(*regions)

    def _turn(self, examined: EvaluationReport, chosen: list[int], room: int) -> tuple[Strip, list[int]]:
        """The words above a page, and what is on it."""
        self._pages = max(1, -(-len(chosen) // room))
        page = min(self.turned, self._pages - 1)
        here = chosen[page * room : (page + 1) * room]
        wrong = sum(not judged.correct for judged in examined.worst)
        kept = "all that is wrong" if self.only_wrong else "the most wrong first"
        if not chosen:
            return self.line(("Nothing is wrong.", "right"), (" & shows what the model is least sure of.", "faint")), []
        words = f"{page * room + 1} to {page * room + len(here)} of {len(chosen)}, {kept}"
        about = f" ({wrong} are wrong), after step {self.step:,}"
        below = "   below: true, predicted"
        told = about + below if len(words + about + below) <= self.size.width else about
        return self.line((words, "title"), (told, "faint")), here

    def _fitting(self) -> int:
        """Which of :data:`WIDTHS` is taken: the largest of which a page has some, and that pixels are not huge in."""
        pictures = self.examined.pictures if self.examined else None
        if self.wide is not None or pictures is None:
            return self.wide or 0
        fitting = 0
        for index, columns in enumerate(WIDTHS):
            _, tall, wide = pictures.shape[:3]
            lines = round(columns * tall / wide / 2) + _WORDS + 1
            held = (self.size.width + GAP) // (columns + GAP) * (self.size.height // lines)
            if held >= _SOME and columns <= _HUGE * wide:
                fitting = index
        return fitting

    def _tile(self, pictures: Pixels, width: int, height: int) -> tuple[int, int]:
        """Columns and lines of a picture, as large as is wished and there is room for."""
        _, tall, wide = pictures.shape[:3]
        columns = min(WIDTHS[self._fitting()], width)
        lines = max(1, round(columns * tall / wide / 2))
        if lines > height - _WORDS - 1:
            lines = max(1, height - _WORDS - 1)
            columns = max(4, min(width, round(2 * lines * wide / tall)))
        return columns, lines

    def _picture(self, examined: EvaluationReport, index: int, columns: int, lines: int) -> list[Strip]:
        assert examined.pictures is not None  # noqa: S101 (there is a page of words else)
        pixels = _solid(examined.pictures[index], self.ground)
        if self.has_blocks:
            return _halves(_scaled(pixels, columns, 2 * lines))
        return _shaded(_scaled(pixels, columns, lines), self.rich_style, dark=self.is_dark)

    def _caption(self, examined: EvaluationReport, judged: SamplePrediction, columns: int) -> Iterator[Strip]:
        name = "right" if judged.correct else "wrong"
        mark = "✓" if judged.correct else "✗"
        sure = f" {units.percent(judged.confidence)}"
        yield self.line((f"{mark} ", name), (fitted(examined.names[judged.label], columns - 2), ""))
        yield self.line((fitted(examined.names[judged.predicted], columns - len(sure)).rstrip() + sure, name))

    def _without_pictures(self, examined: EvaluationReport, chosen: list[int], height: int) -> Iterator[Strip]:
        head, here = self._turn(examined, chosen, height - 3)
        yield head
        yield self.line((examined.reason, "faint"))
        for index in here:
            judged = examined.worst[index]
            name = "right" if judged.correct else "wrong"
            yield self.line(
                (f"{'✓' if judged.correct else '✗'} example {judged.row:<8,}", name),
                (f" {fitted(examined.names[judged.label], 20)} said ", ""),
                (f"{fitted(examined.names[judged.predicted], 20)} {units.percent(judged.confidence):>5}", name),
            )


def _solid(image: Pixels, ground: colour_scales.Colour) -> npt.NDArray[Any]:
    """An image in three colours, whatever is behind it filled in."""
    pixels = image.astype(np.float32)
    if image.shape[2] == 4:
        cover = pixels[:, :, 3:] / 255
        return pixels[:, :, :3] * cover + np.array(ground, np.float32) * (1 - cover)
    return np.repeat(pixels, 3, axis=2) if image.shape[2] == 1 else pixels


def _scaled(pixels: npt.NDArray[Any], width: int, height: int) -> Pixels:
    """An image of another size: means of pixels where it is smaller, the nearest where it is larger."""
    for axis, wanted in ((0, height), (1, width)):
        side = pixels.shape[axis]
        edges = np.arange(wanted) * side // wanted
        if wanted >= side:
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
    """An image in half blocks: the upper pixel of two is the text's colour, the lower one what is behind it."""
    values = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    return [
        Strip([_pair(top, bottom) for top, bottom in zip(upper, lower, strict=True)], len(upper))
        for upper, lower in zip(values[::2].tolist(), values[1::2].tolist(), strict=True)
    ]


def _shaded(pixels: Pixels, style: Style, *, dark: bool) -> list[Strip]:
    """An image in characters, on a dark terminal the denser the lighter."""
    light = pixels.mean(axis=2) / 255
    steps = np.rint((light if dark else 1 - light) * (len(colour_scales.SHADES) - 1)).astype(int)
    return [Strip([Segment("".join(colour_scales.SHADES[step] for step in row), style)]) for row in steps.tolist()]
