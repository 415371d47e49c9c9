"""What a script logged: the list of names; and an image, a text or a histogram at one step."""

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.events import MouseMove
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaSeries
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ALL_ROOM, GAP, Column, width_of
from accel_tui.formatting.text import shorten_middle
from accel_tui.run_state.diagnostics import ChosenItem
from accel_tui.widgets.chart.cell_frame import STYLES
from accel_tui.widgets.chart.plot import position_at
from accel_tui.widgets.chart.style_rules import style_rules
from accel_tui.widgets.diagnostics.drawn_item import DrawnItem, Surface
from accel_tui.widgets.diagnostics.scroll_page import ScrollPage
from accel_tui.widgets.styled_text import TextSpan, cut, length, plain_spans, wrapped_spans
from accel_tui.widgets.table import Table

_HEADINGS = 2
_PIECES = 20  # lines to which a word without blanks is wrapped at once
_COUNTABLE = 1e15  # counts below are shown in full


class MediaView(ScrollPage, can_focus=False):
    """The item, below its name, its step and what there is to say of it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"plot--{name}" for name in STYLES}
    DEFAULT_CSS = style_rules("MediaView", "plot")

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
        return Surface(columns, lines, self.has_blocks, self.is_dark, self.background_rgb, self.rich_style)

    def watch_shown(self, before: DrawnItem | None, shown: DrawnItem | None) -> None:
        """Show another item, from its start if it has another name."""
        same = before and shown and before.logged.series.name == shown.logged.series.name
        self.bin = None
        self.show_again(from_start=not same)

    def watch_bin(self) -> None:
        """Show another bin's values."""
        self.rebuild()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.show_again(from_start=False)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Find the bin below the pointer."""
        self.bin = None
        if self.shown and self.shown.plot:
            surface = self.shown.surface
            at = position_at(self.shown.plot, surface.columns, surface.lines, event.x)
            if at is not None:
                (bars,) = self.shown.plot.series
                self.bin = min(int(bars.x.searchsorted(at, "right")) - 1, len(bars.y) - 1)

    def on_leave(self) -> None:
        """Show no bin's values."""
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
                styles = {name: self.get_component_rich_style(f"plot--{name}") for name in STYLES}
                for row in range(len(frame.characters)):
                    yield Strip([Segment(text, styles[name]) for text, name in frame.runs(row)])

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


_NAME = 18  # width of a name for which columns are left out, that of the number of steps first


class MediaNames(Table[MediaSeries]):
    """A line per name and kind; the current one is shown beside it."""

    BINDING_GROUP_TITLE = "Names"
    opens = False

    def key_of(self, row: MediaSeries) -> Hashable:
        """Name and kind of a series."""
        return row.name, row.kind

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of pages and ends to the item."""
        return action not in ("page", "go_first", "go_last") and super().check_action(action, parameters)

    def show_series(self, series: Sequence[MediaSeries]) -> None:
        """Show series."""
        longest = width_of("name", (each.name for each in series), ALL_ROOM)
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
        del container, viewport
        return sum(max(each.width, each.widest) + GAP for each in self.columns) + self.scrollbar_size_vertical


_COLUMNS: tuple[Column[MediaSeries], ...] = (
    Column("kind", 9, lambda row, _: row.kind),
    Column("steps", 6, lambda row, _: f"{row.count:,}", right=True, drop_priority=2),
    Column("last step", 9, lambda row, _: f"{row.last_step:,}", right=True, drop_priority=1),
)
