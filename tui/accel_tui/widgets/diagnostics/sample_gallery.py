"""Samples of the validation data, highest loss first, with true and predicted classes."""

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
from accel_tui.formatting import numbers
from accel_tui.formatting.text import fit, shorten
from accel_tui.widgets.text_page import TextPage

WIDTHS = (12, 16, 24, 32, 48, 64)
"""Possible widths of an image in cells."""

GAP = 2
"""Cells between two images."""

_WORDS = 2  # lines below an image
_SOME = 8  # minimum number of images per page
_HUGE = 3  # cells per pixel at most

_AT_ONCE = 0.004  # seconds of drawing before keys are handled; painting takes as long again

Pixels = npt.NDArray[np.uint8]


class SampleGallery(TextPage):
    """Pages of images, drawn a few at a time: a large page takes 0.2 s."""

    BINDING_GROUP_TITLE = "Samples"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,pagedown,down", "turn(1)", "Next", id="gallery.next", tooltip="Next page"),
        Binding("left,pageup,up", "turn(-1)", "Previous", id="gallery.previous", tooltip="Previous page"),
        Binding("home", "turn(-1000)", id="gallery.home", tooltip="First page"),
        Binding("end", "turn(1000)", id="gallery.end", tooltip="Last page"),
        Binding("ampersand", "filter", "Only errors", id="gallery.filter", tooltip="Show only errors, or all samples"),
        Binding("plus,equals_sign", "size(1)", "Larger", show=False, id="gallery.larger", tooltip="Larger images"),
        Binding("minus", "size(-1)", "Smaller", show=False, id="gallery.smaller", tooltip="Smaller images"),
    ]

    report: reactive[EvaluationReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    page_number: reactive[int] = reactive(0, repaint=False)
    """The page, from 0."""

    only_wrong: reactive[bool] = reactive(False, repaint=False)
    """Whether only errors are shown."""

    size_index: reactive[int | None] = reactive(None, repaint=False)
    """Index of the image width in :data:`WIDTHS`; ``None`` for automatic."""

    _pages = 1

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        self._drawn: dict[int, list[Strip]] = {}
        self._drawn_for: object = None
        self._missing: dict[int, Region] = {}
        super().__init__(id=id)

    def watch_report(self) -> None:
        """Show the page's images."""
        self.rebuild()

    watch_page_number = watch_report

    def watch_only_wrong(self) -> None:
        """Show the first page of other images, or of another size."""
        self.page_number = 0
        self.rebuild()

    watch_size_index = watch_only_wrong

    def action_turn(self, pages: int) -> None:
        """Turn pages."""
        last = self._pages - 1  # there may be fewer pages after a resize or a new report
        self.page_number = min(max(min(self.page_number, last) + pages, 0), last)

    def action_filter(self) -> None:
        """Toggle errors and all samples."""
        self.only_wrong = not self.only_wrong

    def action_size(self, step: int) -> None:
        """Make images larger or smaller."""
        now = self._fitting() if self.size_index is None else self.size_index
        self.size_index = min(max(now + step, 0), len(WIDTHS) - 1)

    def on_mouse_scroll_down(self) -> None:
        """Next page."""
        self.action_turn(1)

    def on_mouse_scroll_up(self) -> None:
        """Previous page."""
        self.action_turn(-1)

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the summary line and the page of images."""
        report = self.report
        if report is None or not report.worst or height < 4:
            return
        chosen = [index for index, judged in enumerate(report.worst) if not (self.only_wrong and judged.correct)]
        if report.pictures is None:
            yield from self._without_pictures(report, chosen, height)
            return
        columns, lines = self._tile(report.pictures, width, height - 1)
        across = max(1, (width + GAP) // (columns + GAP))
        down = max(1, height // (lines + _WORDS + 1))
        summary, visible = self._turn(report, chosen, across * down)
        yield summary
        made_for = (report, columns, lines, self.background_rgb, self.has_blocks, self.is_dark)
        if made_for != self._drawn_for:
            self._drawn, self._drawn_for = {}, made_for
        self._missing = {
            index: Region(
                position % across * (columns + GAP), 1 + position // across * (lines + _WORDS + 1), columns, lines
            )
            for position, index in enumerate(visible)
            if index not in self._drawn
        }
        if self._missing:
            self.call_later(self._draw_some, report, self._drawn)
        empty = [Strip.blank(columns, self.rich_style)] * lines
        for first in range(0, len(visible), across):
            tiles = [
                [*self._drawn.get(index, empty), *self._caption(report, report.worst[index], columns)]
                for index in visible[first : first + across]
            ]
            for parts in zip(*tiles, strict=True):
                yield Strip.join([part.adjust_cell_length(columns + GAP, self.rich_style) for part in parts])
            yield Strip.blank(0)

    def _draw_some(self, report: EvaluationReport, drawn: dict[int, list[Strip]]) -> None:
        """Draw missing images until the time is up, then ask for another paint."""
        until = time.perf_counter() + _AT_ONCE
        regions = []
        while drawn is self._drawn and self._missing and time.perf_counter() < until:
            index = next(iter(self._missing))
            region = self._missing.pop(index)
            drawn[index] = self._picture(report, index, region.width, region.height)
            regions.append(region)
        if regions:
            self._lines_cache = None
            self.refresh(*regions)

    def _turn(self, report: EvaluationReport, chosen: list[int], per_page: int) -> tuple[Strip, list[int]]:
        """The summary line, and the samples of the page."""
        self._pages = max(1, -(-len(chosen) // per_page))
        page = min(self.page_number, self._pages - 1)
        visible = chosen[page * per_page : (page + 1) * per_page]
        wrong = sum(not judged.correct for judged in report.worst)
        filter_text = "only errors, highest loss first" if self.only_wrong else "highest loss first"
        if not chosen:
            return self.line(("No errors.", "right"), (" & shows all samples, highest loss first.", "faint")), []
        text = f"{page * per_page + 1} to {page * per_page + len(visible)} of {len(chosen)}, {filter_text}"
        after = f" ({numbers.counted(wrong, 'error')}), after step {self.step:,}"
        below = "   below: true, predicted"
        suffix = after + below if len(text + after + below) <= self.size.width else after
        return self.line((text, "title"), (suffix, "faint")), visible

    def _fitting(self) -> int:
        """The largest width in :data:`WIDTHS` with enough images per page, and without huge pixels."""
        pictures = self.report.pictures if self.report else None
        if self.size_index is not None or pictures is None:
            return self.size_index or 0
        fitting = 0
        for index, columns in enumerate(WIDTHS):
            _, pixel_rows, pixel_columns = pictures.shape[:3]
            lines = round(columns * pixel_rows / pixel_columns / 2) + _WORDS + 1
            per_page = (self.size.width + GAP) // (columns + GAP) * (self.size.height // lines)
            if per_page >= _SOME and columns <= _HUGE * pixel_columns:
                fitting = index
        return fitting

    def _tile(self, pictures: Pixels, width: int, height: int) -> tuple[int, int]:
        """Columns and lines of an image."""
        _, pixel_rows, pixel_columns = pictures.shape[:3]
        columns = min(WIDTHS[self._fitting()], width)
        lines = max(1, round(columns * pixel_rows / pixel_columns / 2))
        if lines > height - _WORDS - 1:
            lines = max(1, height - _WORDS - 1)
            columns = max(4, min(width, round(2 * lines * pixel_columns / pixel_rows)))
        return columns, lines

    def _picture(self, report: EvaluationReport, index: int, columns: int, lines: int) -> list[Strip]:
        assert report.pictures is not None  # noqa: S101 (otherwise a text page is built)
        pixels = _solid(report.pictures[index], self.background_rgb)
        if self.has_blocks:
            return _halves(_scaled(pixels, columns, 2 * lines))
        return _shaded(_scaled(pixels, columns, lines), self.rich_style, dark=self.is_dark)

    def _caption(self, report: EvaluationReport, judged: SamplePrediction, columns: int) -> Iterator[Strip]:
        name = "right" if judged.correct else "wrong"
        mark = "✓" if judged.correct else "✗"
        confidence = f" {numbers.percent(judged.confidence)}"
        yield self.line((f"{mark} ", name), (fit(report.names[judged.label], columns - 2), ""))
        yield self.line((shorten(report.names[judged.predicted], columns - len(confidence)) + confidence, name))

    def _without_pictures(self, report: EvaluationReport, chosen: list[int], height: int) -> Iterator[Strip]:
        summary, visible = self._turn(report, chosen, height - 3)
        yield summary
        yield self.line((report.reason, "faint"))
        for index in visible:
            judged = report.worst[index]
            name = "right" if judged.correct else "wrong"
            yield self.line(
                (f"{'✓' if judged.correct else '✗'} example {judged.row:<8,}", name),
                (f" true {fit(report.names[judged.label], 20)} predicted ", ""),
                (f"{fit(report.names[judged.predicted], 20)} {numbers.percent(judged.confidence):>5}", name),
            )


def _solid(image: Pixels, background: colour_scales.Colour) -> npt.NDArray[Any]:
    """An image in RGB, blended with the background where it is transparent."""
    pixels = image.astype(np.float32)
    if image.shape[2] == 4:
        alpha = pixels[:, :, 3:] / 255
        return pixels[:, :, :3] * alpha + np.array(background, np.float32) * (1 - alpha)
    return np.repeat(pixels, 3, axis=2) if image.shape[2] == 1 else pixels


def _scaled(pixels: npt.NDArray[Any], width: int, height: int) -> Pixels:
    """An image resized: means of pixels when smaller, nearest neighbour when larger."""
    for axis, target in ((0, height), (1, width)):
        side = pixels.shape[axis]
        edges = np.arange(target) * side // target
        if target >= side:
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
