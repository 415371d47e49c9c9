"""Samples of the validation data as pictures: images, masks and spectrograms, with captions."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import Example, SamplePrediction
from accel_tui.formatting.bars import bar
from accel_tui.formatting.text import fit, shorten
from accel_tui.widgets.diagnostics import pixels
from accel_tui.widgets.diagnostics.examples import Caption, ListedExamples, captions
from accel_tui.widgets.text_page import TextPage

WIDTHS = (12, 16, 24, 32, 48, 64)
"""Possible widths of an image in cells."""

GAP = 2
"""Cells between two samples; the pictures of one are closer."""

_LEAST_BAR, _WIDEST_BAR = 4, 16  # cells of a bar of confidence
_WORDS = 2  # lines below an image, where they are not beside it
_LEAST_BESIDE, _MOST_BESIDE = 8, 15  # cells of the words beside an image
_WIDE = 90  # cells of a page from which they are
_SOME = 8  # minimum number of images per page
_HUGE = 3  # cells per pixel at most

_AT_ONCE = 0.004  # seconds of drawing before keys are handled; painting takes as long again


@dataclass(frozen=True, slots=True)
class _Tile:
    """The size of a sample."""

    pictures: int
    """Pictures of a sample."""
    columns: int
    """Width of a picture in cells."""
    lines: int
    """Its height."""
    beside: int
    """Cells of the words beside the pictures; 0 if they are below them."""

    @property
    def width(self) -> int:
        return self.pictures * (self.columns + 1) - 1 + (self.beside and self.beside + 1)

    @property
    def height(self) -> int:
        """Lines of a sample with its words and the blank line below it."""
        return self.lines + 1 + (0 if self.beside else _WORDS)


class SampleGallery(TextPage):
    """Pages of samples, drawn a few pictures at a time: a large page takes 0.2 s."""

    BINDING_GROUP_TITLE = "Pictures"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,pagedown,down", "turn(1)", "Next", id="gallery.next", tooltip="Next page"),
        Binding("left,pageup,up", "turn(-1)", "Previous", id="gallery.previous", tooltip="Previous page"),
        Binding("home", "turn(-1000)", id="gallery.home", tooltip="First page"),
        Binding("end", "turn(1000)", id="gallery.end", tooltip="Last page"),
        Binding("M", "blend", "Blend", id="gallery.blend", tooltip="Draw masks over the image, or beside it"),
        Binding("plus,equals_sign", "size(1)", id="gallery.larger", tooltip="Larger images"),
        Binding("minus", "size(-1)", id="gallery.smaller", tooltip="Smaller images"),
    ]

    examples: reactive[ListedExamples | None] = reactive(None, repaint=False)
    """The samples."""

    page_number: reactive[int] = reactive(0, repaint=False)
    """The page, from 0."""

    size_index: reactive[int | None] = reactive(None, repaint=False)
    """Index of the image width in :data:`WIDTHS`; ``None`` for automatic."""

    is_blended: reactive[bool] = reactive(default=False, repaint=False)
    """Whether masks are drawn over the image."""

    _pages = 1

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        self._drawn: dict[tuple[int, int], list[Strip]] = {}
        self._drawn_for: object = None
        self._missing: dict[tuple[int, int], Region] = {}
        self._pictures: tuple[tuple[pixels.ViewPicture, ...], ...] = ()
        self._longest = _MOST_BESIDE
        super().__init__(id=id)

    def watch_examples(self, before: ListedExamples | None, examples: ListedExamples | None) -> None:
        """Show other samples, from the first page if others are chosen."""
        if before and examples and (before.order, before.only_wrong) != (examples.order, examples.only_wrong):
            self.page_number = 0
        self.watch_is_blended()
        self.refresh_bindings()

    def watch_page_number(self) -> None:
        self.rebuild()

    def watch_is_blended(self) -> None:
        """Show masks over the image or beside it."""
        self._pictures = tuple(pixels.pictures_of(each, blended=self.is_blended) for each in self._shown)
        words = [caption for each in self._shown if self.examples for caption in captions(self.examples.report, each)]
        self._longest = max((cell_len(each.mark + each.text + each.suffix) for each in words), default=0)
        self.rebuild()

    def watch_size_index(self) -> None:
        self.page_number = 0
        self.rebuild()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to blend only masks."""
        return action != "blend" or any(picture.mask is not None for each in self._pictures[:1] for picture in each)

    def action_turn(self, pages: int) -> None:
        last = self._pages - 1  # there may be fewer pages after a resize or a new report
        self.page_number = min(max(min(self.page_number, last) + pages, 0), last)

    def action_blend(self) -> None:
        """Toggle masks over the image and beside it."""
        self.is_blended = not self.is_blended

    def action_size(self, step: int) -> None:
        now = self._fitting() if self.size_index is None else self.size_index
        self.size_index = min(max(now + step, 0), len(WIDTHS) - 1)

    def on_mouse_scroll_down(self) -> None:
        self.action_turn(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_turn(-1)

    @property
    def _shown(self) -> tuple[Example, ...]:
        return self.examples.shown if self.examples else ()

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the summary line, the page of samples, and the legend of masks."""
        if self.examples is None or height < 4:
            return
        report, shown = self.examples.report, self._shown
        legend = pixels.mask_legend(report, width, blocks=self.has_blocks)
        if legend is not None and height > 8:
            height -= 1
        else:
            legend = None
        tile = self._tile(width, height - 1)
        across = max(1, (width + GAP) // (tile.width + GAP))
        down = max(1, height // tile.height)
        per_page = across * down
        self._pages = max(1, -(-len(shown) // per_page))
        first = min(self.page_number, self._pages - 1) * per_page
        visible = range(first, min(first + per_page, len(shown)))
        below = " | ".join(pixels.picture_names(shown[first])) if tile.pictures > 1 else ""
        below = below or f"{'beside' if tile.beside else 'below'}: true, predicted"
        yield self.line(*self.examples.summary(first, visible.stop, width, below))
        made_for = (self.examples, tile, self.is_blended, self.background_rgb, self.has_blocks, self.is_dark)
        if made_for != self._drawn_for:
            self._drawn, self._drawn_for = {}, made_for
        self._missing = {
            (index, picture): Region(
                position % across * (tile.width + GAP) + picture * (tile.columns + 1),
                1 + position // across * tile.height,
                tile.columns,
                tile.lines,
            )
            for position, index in enumerate(visible)
            for picture in range(tile.pictures)
            if (index, picture) not in self._drawn
        }
        if self._missing:
            self.call_later(self._draw_some, self._drawn)
        lines = 0  # with the summary, and without the blank line below the last samples
        for start in range(first, visible.stop, across):
            tiles = [self._sample(index, tile) for index in range(start, min(start + across, visible.stop))]
            for parts in zip(*tiles, strict=True):
                yield Strip.join([part.adjust_cell_length(tile.width + GAP, self.rich_style) for part in parts])
            if legend is None or start + across < visible.stop:
                yield Strip.blank(0)
            lines += tile.height
        if legend is not None:
            yield from [Strip.blank(0)] * (height - lines)
            yield Strip([Segment(text, style or self.rich_style) for text, style in legend])

    def _sample(self, index: int, tile: _Tile) -> list[Strip]:
        """The pictures of a sample beside one another, and its caption."""
        assert self.examples  # noqa: S101 (otherwise no page is built)
        empty = [Strip.blank(tile.columns, self.rich_style)] * tile.lines
        gap = Strip.blank(1, self.rich_style)
        pictures = [self._drawn.get((index, picture), empty) for picture in range(tile.pictures)]
        rows = [
            Strip.join([part for strip in strips for part in (strip, gap)][:-1])
            for strips in zip(*pictures, strict=True)
        ]
        example = self._shown[index]
        true, predicted = captions(self.examples.report, example)
        share = example.confidence if isinstance(example, SamplePrediction) else 0.0
        if tile.beside:
            words = [
                self._caption(true, predicted.style, tile.beside),
                self._caption(predicted, predicted.style, tile.beside),
                self.line((bar(share, min(tile.beside - 1, _WIDEST_BAR)), predicted.style)),
            ]
            words += [Strip.blank(0)] * (len(rows) - len(words))
            return [Strip.join([row, gap, line]) for row, line in zip(rows, words, strict=False)]
        return [
            *rows,
            self._caption(true, predicted.style, tile.width),
            self._caption(predicted, predicted.style, tile.width, share),
        ]

    def _caption(self, caption: Caption, style: str, width: int, share: float = 0.0) -> Strip:
        """A line of a caption; a share from 0 to 1 is a bar in the room that is left."""
        room = width - len(caption.mark) - len(caption.suffix)
        text = fit(caption.text, room) if caption.mark else shorten(caption.text, room)
        left = width - len(caption.mark) - cell_len(text) - len(caption.suffix) - 1
        drawn = f" {bar(share, left)}" if share and left >= _LEAST_BAR else ""
        return self.line((caption.mark, style), (text + caption.suffix + drawn, caption.style))

    def _draw_some(self, drawn: dict[tuple[int, int], list[Strip]]) -> None:
        """Draw missing pictures until the time is up, then ask for another paint."""
        until = time.perf_counter() + _AT_ONCE
        regions = []
        while drawn is self._drawn and self._missing and time.perf_counter() < until:
            key = next(iter(self._missing))
            region = self._missing.pop(key)
            drawn[key] = self._draw(key, region.width, region.height)
            regions.append(region)
        if regions:
            self._lines_cache = None
            self.refresh(*regions)

    def _draw(self, key: tuple[int, int], columns: int, lines: int) -> list[Strip]:
        """Draw a picture in the middle of its place."""
        index, number = key
        pictures = self._pictures[index]
        if number >= len(pictures):
            return [Strip.blank(columns, self.rich_style)] * lines
        picture = pictures[number]
        width, height = pixels.size_within(picture.pixels, columns, lines)
        if picture.mask is not None and not self.has_blocks:
            strips = pixels.draw_classes(picture.mask, width, height, self.rich_style)
        else:
            strips = pixels.draw_image(
                picture.pixels,
                width,
                height,
                blocks=self.has_blocks,
                dark=self.is_dark,
                background=self.background_rgb,
                style=self.rich_style,
                smooth=picture.mask is None or self.is_blended,
                images=self.pixel_images,
            )
        strips += [Strip.blank(0)] * (lines - height)
        return [strip.adjust_cell_length(columns, self.rich_style) for strip in strips]

    def _shape(self) -> tuple[int, int, int]:
        """Pictures of a sample, and height and width in pixels of the largest."""
        sides = [picture.pixels.shape[:2] for each in self._pictures for picture in each] or [(1, 1)]
        return max([1, *map(len, self._pictures)]), max(side[0] for side in sides), max(side[1] for side in sides)

    def _fitting(self) -> int:
        """The largest width in :data:`WIDTHS` with enough images per page, and without huge pixels."""
        if self.size_index is not None:
            return self.size_index
        fitting = 0
        pictures, pixel_rows, pixel_columns = self._shape()
        for index, columns in enumerate(WIDTHS):
            lines = max(1, round(columns * pixel_rows / pixel_columns / 2))
            tile = _Tile(pictures, columns, lines, self._beside(self.size.width, lines))
            across = (self.size.width + GAP) // (tile.width + GAP)
            if pictures * across * (self.size.height // tile.height) >= _SOME and columns <= _HUGE * pixel_columns:
                fitting = index
        return fitting

    def _tile(self, width: int, height: int) -> _Tile:
        pictures, pixel_rows, pixel_columns = self._shape()
        columns = WIDTHS[self._fitting()]
        beside = self._beside(width, round(columns * pixel_rows / pixel_columns / 2))
        columns = min(columns, (width - (beside and beside + 1) + 1) // pictures - 1)
        lines = max(1, round(columns * pixel_rows / pixel_columns / 2))
        most = height - 1 - (0 if beside else _WORDS)
        if lines > most:
            lines = max(1, most)
            columns = max(4, min(columns, round(2 * lines * pixel_columns / pixel_rows)))
        tile = _Tile(pictures, columns, lines, beside)
        if not beside:
            return tile
        across = max((width + GAP) // (tile.width + GAP), 1)
        return replace(tile, beside=beside + max(width + GAP - across * (tile.width + GAP), 0) // across)

    def _beside(self, width: int, lines: int) -> int:
        """The cells of the words beside pictures of some lines; 0 where they are below them."""
        words = min(max(self._longest, _LEAST_BESIDE), _MOST_BESIDE)
        return words if width >= _WIDE and lines > _WORDS else 0
