"""Images, texts and histograms that a script logged: their names, and the chosen one at one of its steps."""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeAlias

from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import MouseMove
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.worker import get_current_worker

from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaSeries
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ALL_ROOM, GAP, Column, column_width
from accel_tui.formatting.text import shorten_middle
from accel_tui.run_state.diagnostics import ChosenItem, LoggedMedia, read_item
from accel_tui.widgets.chart.cell_frame import STYLES
from accel_tui.widgets.chart.cell_looks import look_of
from accel_tui.widgets.chart.figure import ChartFigure, figure_of_plot
from accel_tui.widgets.chart.plot import position_at
from accel_tui.widgets.diagnostics.pixels import DrawnItem, Surface, draw_item
from accel_tui.widgets.diagnostics.scroll_page import ScrollPage
from accel_tui.widgets.styled_text import TextSpan, cut, length, plain_spans, wrapped_spans
from accel_tui.widgets.table import Table

_HEADINGS = 2
_PIECES = 20  # lines to which a word without blanks is wrapped at once
_COUNTABLE = 1e15  # counts below are shown in full


class MediaView(ScrollPage, can_focus=False):
    """The item, below its name, its step and what there is to say of it."""

    shown: reactive[DrawnItem | None] = reactive(None, repaint=False)
    """The item."""

    bin: reactive[int | None] = reactive(None, repaint=False)
    """Index of the bin below the mouse pointer."""

    class Outdated(Message):
        """No item was drawn for the size and the theme."""

    @property
    def surface(self) -> Surface | None:
        """Where an image is drawn now; ``None`` if there is no room."""
        columns, lines = self.size.width, self.size.height - _HEADINGS
        if columns < 1 or lines < 1:
            return None
        where = (self.has_blocks, self.is_dark, self.background_rgb, self.rich_style, self.pixel_images)
        return Surface(columns, lines, *where)

    def watch_shown(self, before: DrawnItem | None, shown: DrawnItem | None) -> None:
        """Show another item, from its start if it has another name."""
        same = before and shown and before.logged.series.name == shown.logged.series.name
        self.bin = None
        self.show_again(from_start=not same)

    def watch_bin(self) -> None:
        self.rebuild()

    def on_resize(self) -> None:
        self.show_again(from_start=False)

    def on_mouse_move(self, event: MouseMove) -> None:
        self.bin = None
        if self.shown and self.shown.plot:
            surface = self.shown.surface
            at = position_at(self.shown.plot, surface.columns, surface.lines, event.x)
            if at is not None:
                (bars,) = self.shown.plot.series
                self.bin = min(int(bars.x.searchsorted(at, "right")) - 1, len(bars.y) - 1)

    def on_leave(self) -> None:
        self.bin = None

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """The name and the step, and a description of the item."""
        if self.shown is None or self.shown.surface != self.surface:
            self.post_message(self.Outdated())
        if self.shown is None:
            return ()
        logged = self.shown.logged
        where = ""
        if logged.steps:
            where = f"step {logged.steps[logged.index]:,}, {logged.index + 1:,} of {len(logged.steps):,}"
        name = shorten_middle(printable_line(logged.series.name), width)
        has_room = length([(f"{name}  {where}", "")]) <= width
        about = [*([] if has_room else [(f"{where}  ", "")]), *self._about(logged)]
        if len(visible) < lines:
            about.append((f"  lines {visible.start + 1:,} to {visible.stop:,}", "faint"))
        if length(about) > width:
            about = [*cut(about, 0, width - 1), ("…", "faint")]
        return [self.line((name, "head"), (f"  {where}" if has_room else "", "")), self.line(*about)]

    def lines(self, width: int) -> Iterator[Strip]:
        """The picture, the lines of the text, or the bars."""
        if self.shown is None:
            return
        logged = self.shown.logged
        if logged.problem:
            yield from (self.line(*spans) for spans in wrapped_spans([(logged.problem, "wrong")], width))
        match logged.item:
            case LoggedImage():
                yield from self.shown.strips
            case LoggedText(text):
                pieces = re.compile(rf"\S{{1,{_PIECES * width}}} *| +")
                for line in text.split("\n"):
                    words = ((match.group(), "") for match in pieces.finditer(line))
                    for spans in wrapped_spans(words, width):
                        yield self.line((plain_spans(spans), ""))
            case Histogram() if frame := self.shown.frame:
                styles = {name: look_of(self, name) for name in STYLES}
                for row in range(len(frame.characters)):
                    yield Strip([Segment(text, styles[name]) for text, name in frame.runs(row)])

    @property
    def figures(self) -> list[ChartFigure]:
        """The histogram, for files; none of another item."""
        if self.shown is None or self.shown.plot is None:
            return []
        title = f"{printable_line(self.shown.logged.series.name)}: {self.shown.plot.title}"
        return [figure_of_plot(replace(self.shown.plot, title=title))]

    def _about(self, logged: ChosenItem) -> Iterator[TextSpan]:
        item = logged.item
        match item:
            case LoggedImage(pixels):
                height, width, channels = pixels.shape
                yield f"{width} x {height}{' gray' if channels == 1 else ''}", "faint"
            case LoggedText(text):
                yield numbers.counted(len(text), "character"), "faint"
            case Histogram():
                yield self._about_histogram(item), "faint"
                if item.not_finite:
                    yield f"  {item.not_finite:,} not finite", "wrong"
        if item and item.note:
            yield f"  {printable_line(item.note)}", "faint"

    def _about_histogram(self, histogram: Histogram) -> str:
        if not len(histogram.counts):
            return "no finite values"
        if self.bin is None:
            first, last, count = histogram.edges[0], histogram.edges[-1], histogram.counts.sum()
        else:
            first, last = histogram.edges[self.bin], histogram.edges[self.bin + 1]
            count = histogram.counts[self.bin]
        number = f"{count:,.0f}" if count < _COUNTABLE and count.is_integer() else f"{count:.4g}"
        return f"{number} values from {first:.4g} to {last:.4g}"


_NAME = 18  # width of a name for which columns are left out, the number of steps first


class MediaNames(Table[MediaSeries]):
    """A line per name and kind; the current one is shown beside it."""

    BINDING_GROUP_TITLE = "Names"
    opens = False

    def key_of(self, row: MediaSeries) -> Hashable:
        return row.name, row.kind

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of pages and ends to the item."""
        return action not in ("page", "go_first", "go_last") and super().check_action(action, parameters)

    def show_series(self, series: Sequence[MediaSeries]) -> None:
        longest = column_width("name", (each.name for each in series), ALL_ROOM)
        name: Column[MediaSeries] = Column(
            "name",
            min(longest, _NAME),
            lambda row, _: row.name,
            widest=longest,
            middle=True,
        )
        self.show_rows(series, (name, *_COLUMNS))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Width of all columns with the longest name."""
        return sum(max(each.width, each.widest) + GAP for each in self.columns) + self.scrollbar_size_vertical


_COLUMNS: tuple[Column[MediaSeries], ...] = (
    Column("kind", 9, lambda row, _: row.kind),
    Column("steps", 6, lambda row, _: f"{row.count:,}", right=True, drop_priority=2),
    Column("last step", 9, lambda row, _: f"{row.last_step:,}", right=True, drop_priority=1),
)


_Request: TypeAlias = tuple[Path, MediaSeries, int | None, Surface]


class Logged(Horizontal):
    """A list of names, and the item of the chosen name. Shows the newest step until the user goes to another."""

    BINDING_GROUP_TITLE = "Logged"
    DEFAULT_CSS = """
    Logged {
        height: 1fr;
        & > MediaNames { width: auto; max-width: 48%; margin-right: 1; border-right: solid $border; }
        & > MediaView { width: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Earlier", id="logged.earlier", tooltip="Show the step before"),
        Binding("right", "move(1)", "Later", id="logged.later", tooltip="Show the step after"),
        Binding("home", "first", "First", id="logged.first", tooltip="Show the first step"),
        Binding("end", "newest", "Newest", id="logged.newest", tooltip="Show the newest step, also when one is added"),
        Binding("pagedown,space", "page(1)", id="logged.page-down", tooltip="Scroll a text down"),
        Binding("pageup", "page(-1)", id="logged.page-up", tooltip="Scroll a text up"),
    ]

    media: reactive[LoggedMedia | None] = reactive(None, repaint=False)
    """The images, texts and histograms of the run; ``None`` for none."""

    step: reactive[int | None] = reactive(None, repaint=False)
    """The step to show; ``None`` for the newest."""

    _wanted: _Request | None = None
    _current: Hashable = None

    def compose(self) -> ComposeResult:
        yield MediaNames()
        yield MediaView()

    def on_mount(self) -> None:
        """Show what was set before."""
        self._list()

    def watch_media(self) -> None:
        """List the names, and read the chosen item again if it has changed."""
        if self.is_mounted:
            self._list()

    def watch_step(self) -> None:
        self._read_chosen()

    def action_move(self, steps: int) -> None:
        """Show an earlier or a later step; the newest one is followed."""
        if (shown := self.query_one(MediaView).shown) and shown.logged.steps:
            index = shown.logged.index + steps
            newest = index >= len(shown.logged.steps) - 1
            self.step = None if newest else shown.logged.steps[max(index, 0)]

    def action_first(self) -> None:
        self.step = 0

    def action_newest(self) -> None:
        """Show the newest step, and follow it."""
        self.step = None

    def action_page(self, pages: int) -> None:
        self.query_one(MediaView).action_page(pages)

    @on(MediaNames.Moved)
    def _show_current(self, event: MediaNames.Moved) -> None:
        """Show the newest step of another name."""
        event.stop()
        names = self.query_one(MediaNames)
        current = names.key_of(names.current) if names.current else None
        if current != self._current:
            self._current, self.step = current, None
        self._read_chosen()

    @on(MediaView.Outdated)
    def _draw_again(self, event: MediaView.Outdated) -> None:
        event.stop()
        self._read_chosen()

    def _list(self) -> None:
        if self.media:
            self.query_one(MediaNames).show_series(self.media.series)

    def _read_chosen(self) -> None:
        series, surface = self.query_one(MediaNames).current, self.query_one(MediaView).surface
        if self.media and series and surface:
            wanted = (self.media.directory, series, self.step, surface)
            if wanted != self._wanted:
                self._wanted = wanted
                self._read(wanted)

    @work(thread=True, exclusive=True, exit_on_error=False, group="item")
    def _read(self, wanted: _Request) -> None:
        if not get_current_worker().is_cancelled:
            directory, series, step, surface = wanted
            self.call_later(self._show, wanted, draw_item(read_item(directory, series, step), surface))

    def _show(self, wanted: _Request, drawn: DrawnItem) -> None:
        if wanted == self._wanted:
            self.query_one(MediaView).shown = drawn
