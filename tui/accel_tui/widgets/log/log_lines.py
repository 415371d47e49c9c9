"""The lines of a log: wrapped, filtered, searched."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from accel_engine.words.numbers import counted
from accel_tui.run_state.log_tail import LogLine
from accel_tui.run_state.log_text import Filter, Level, is_noise, level_of, match_ranges
from accel_tui.widgets.list_keys import ScrolledByKeys

MAX_LINES = 8000
"""Maximum number of lines in memory."""

MAX_LOOKED_AT = 200
"""Maximum number of lines in which something to fold is looked for; most of it comes first."""


_Row = tuple[int, int, int]  # number of a line, and the part of its text; of a fold, FOLD and the number of lines

FOLD = -1

_NUMBER = re.compile(r"(?<= )\d[\d.,/:e+-]*[kM]?(?: s$)?")


class LogLines(ScrolledByKeys):
    """Shows at most :data:`MAX_LINES` lines, and follows new ones while scrolled to the end.

    Scrolling beyond the first line loads older ones, and drops the newest, which scrolling beyond the last line loads
    again.
    """

    DEFAULT_CSS = """
    LogLines {
        height: 1fr;
        padding: 0 1;
        background: $background;
        scrollbar-size: 1 1;
        overflow-x: hidden;
        overflow-y: scroll;

        .log-lines--fold, .log-lines--word { color: $text-muted; }
        .log-lines--epoch { color: $foreground; }
        .log-lines--warning { color: $warning; }
        .log-lines--error { color: $error; }
        .log-lines--found { background: $warning 40%; }
        .log-lines--here { background: $warning; color: $background; }
        &:focus { scrollbar-color: $accent; scrollbar-background: $accent 25%; }  /* a short log has no thumb */
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-lines--fold",
        "log-lines--word",
        "log-lines--epoch",
        "log-lines--warning",
        "log-lines--error",
        "log-lines--found",
        "log-lines--here",
    }
    BINDING_GROUP_TITLE = "Log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("full_stop", "find(1)", "Next", id="log.next", tooltip="Next match"),
        Binding("comma", "find(-1)", "Previous", id="log.previous", tooltip="Previous match"),
        Binding("enter", "fold", "Fold", id="log.fold", tooltip="Show TensorFlow's own lines, or fold them"),
    ]

    class LinesWanted(Message):
        """Older lines, or the newest, should be loaded."""

        def __init__(self, *, older: bool) -> None:
            super().__init__()
            self.older = older

    class Changed(Message):
        """Other lines are visible, or another match is selected."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[LogLine] = []
        self.filter = Filter()
        self.searched = ""
        self.is_truncated = False
        """Whether newer lines were dropped."""
        self.shown_count = 0
        """Number of lines that pass the filter."""
        self.is_folded = True
        """Whether lines of TensorFlow that are neither warnings nor errors are folded, unless there is a search."""
        self._levels: list[Level] = []
        self._rows: list[_Row] = []
        self._found: list[int] = []  # line numbers
        self._here: int | None = None
        self._width = self._height = 0

    @property
    def follows(self) -> bool:
        """Whether it is scrolled to the end."""
        return not self.is_truncated and self.scroll_offset.y >= self.max_scroll_y

    @property
    def found(self) -> tuple[int, int]:
        """Number of the selected match, from 1, and the number of matches."""
        position = bisect_left(self._found, self._here) + 1 if self._here is not None else 0
        return position, len(self._found)

    def clear(self) -> None:
        """Remove all lines, and follow again."""
        self.clear_buffer()
        self._lay_out()

    def clear_buffer(self) -> None:
        """Remove all lines without layout: Textual does not show what is laid out while hidden."""
        self.lines, self._levels, self.is_truncated, self._here = [], [], False, None
        self._rows, self._found, self.shown_count = [], [], 0

    def add(self, lines: Sequence[LogLine]) -> None:
        """Append lines."""
        if self.is_truncated:
            return
        followed, kept = self.follows, len(self.lines)
        if not followed and kept + len(lines) > MAX_LINES:
            self.is_truncated = True  # not while the user reads older lines
            return
        self.lines += lines
        self._levels += _levels(lines, self._levels[-1] if kept else Level.INFO)
        if len(self.lines) > MAX_LINES:
            surplus = len(self.lines) - MAX_LINES + MAX_LINES // 8  # more than needed, so that it happens rarely
            del self.lines[:surplus], self._levels[:surplus]
            self._here = None
            self._lay_out()
        else:
            self._wrap(kept)
        if followed:
            self.scroll_end(animate=False)

    def add_older(self, lines: Sequence[LogLine]) -> None:
        """Prepend lines, and keep the scroll position."""
        below = len(self._rows) - self.scroll_offset.y
        self.lines = [*lines, *self.lines]
        self._levels = [*_levels(lines, Level.INFO), *self._levels]
        if len(self.lines) > MAX_LINES:
            gone = len([row for row in self._rows if row[0] >= MAX_LINES - len(lines)])
            below -= gone
            del self.lines[MAX_LINES:], self._levels[MAX_LINES:]
            self.is_truncated = True
        if self._here is not None:
            self._here += len(lines)
        self._lay_out()
        self.scroll_to(y=max(0, len(self._rows) - below), animate=False)

    def show_only(self, wanted: Filter) -> None:
        """Set the filter."""
        self.filter = wanted
        followed = self.follows
        self._lay_out()
        if followed:
            self.scroll_end(animate=False)

    def search(self, text: str) -> None:
        """Search a text, and go to the last visible match, or the nearest above."""
        if self.is_folded and bool(text) is not bool(self.searched):
            self.searched = text  # a search shows all lines
            self._lay_out()
        self.searched, self._here = text, None
        self._find_matches(0)
        if self._found:
            seen = self._rows[min(self.scroll_offset.y + self.size.height, len(self._rows)) - 1][0]
            self._go_to(self._found[max(0, bisect_right(self._found, seen) - 1)])
        self.refresh()
        self.post_message(self.Changed())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the matches only during a search, and folding only where there is something to fold."""
        if action == "fold":
            return not self._shows_all and any(is_noise(line.text) for line in self.lines[:MAX_LOOKED_AT])
        return bool(self._found) if action == "find" else True

    @property
    def _shows_all(self) -> bool:
        """Whether no line is folded, as one is searched."""
        return bool(self.searched) or self.filter != Filter()

    def action_fold(self) -> None:
        """Fold TensorFlow's own lines, or show them."""
        self.is_folded, follows = not self.is_folded, self.follows
        self._lay_out()
        if follows:
            self.scroll_end(animate=False)

    def on_click(self, event: Click) -> None:
        """Show what is folded in the line that is clicked."""
        row = self.scroll_offset.y + event.y
        if row < len(self._rows) and self._rows[row][1] == FOLD:
            self.action_fold()

    def action_find(self, by: int) -> None:
        """Go to the next match, or the previous one; wraps around."""
        if self._found:
            here = 0 if self._here is None else bisect_left(self._found, self._here) + by
            self._go_to(self._found[here % len(self._found)])
            self.post_message(self.Changed())

    def action_scroll_up(self) -> None:
        """Scroll up by a row; at the top, load older lines."""
        self._request_older()
        super().action_scroll_up()

    def action_page_up(self) -> None:
        """Scroll up by a page; at the top, load older lines."""
        self._request_older()
        super().action_page_up()

    def action_scroll_home(self) -> None:
        """Scroll to the top; there, load older lines."""
        self._request_older()
        super().action_scroll_home()

    def action_scroll_end(self) -> None:
        """Scroll to the end; reload it if it was dropped."""
        if self.is_truncated:
            self.post_message(self.LinesWanted(older=False))
        else:
            self.scroll_end(animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value <= 0 < old_value:
            self._request_older()
        elif self.is_truncated and old_value < new_value >= self.max_scroll_y:
            self.post_message(self.LinesWanted(older=False))
        self.post_message(self.Changed())

    def on_resize(self, event: Resize) -> None:
        """Wrap the lines for the new width, and stay at the end in less height."""
        followed = not self.is_truncated and self.scroll_offset.y >= len(self._rows) - self._height
        width, self._height = self.scrollable_content_region.size
        if width != self._width:
            self._width = width
            self._lay_out()
        if followed:
            self.scroll_end(animate=False)

    def render_line(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        width = self.scrollable_content_region.width
        if row >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        number, start, end = self._rows[row]
        if start == FOLD:
            words = f"▸ {counted(end, 'line')} of TensorFlow"
            style = self.get_component_rich_style("log-lines--fold")
            return Strip([Segment(words, style)]).adjust_cell_length(width, self.rich_style)
        text, level = self.lines[number].text, self._levels[number]
        style = self.rich_style
        if level:
            style = self.get_component_rich_style(f"log-lines--{level.name.lower()}")
        mark = self.get_component_rich_style("log-lines--here" if number == self._here else "log-lines--found")
        segments, at = [], start
        for first, last in match_ranges(text, self.searched):
            first, last = max(first, at), min(last, end)
            if first < last:
                segments += [Segment(text[at:first], style), Segment(text[first:last], mark)]
                at = last
        if self.lines[number].is_epoch and not segments:
            segments = list(self._epoch_segments(text[at:end]))
        else:
            segments.append(Segment(text[at:end], style))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _epoch_segments(self, text: str) -> Iterator[Segment]:
        """The values of an epoch, brighter than their names."""
        word, value, end = (*(self.get_component_rich_style(f"log-lines--{name}") for name in ("word", "epoch")), 0)
        for found in _NUMBER.finditer(text):
            yield Segment(text[end : found.start()], word)
            yield Segment(found[0], value)
            end = found.end()
        yield Segment(text[end:], word)

    def _request_older(self) -> None:
        if self.scroll_offset.y <= 0 and self.lines:
            self.post_message(self.LinesWanted(older=True))

    def _go_to(self, number: int) -> None:
        self._here = number
        row = bisect_left(self._rows, (number, 0, 0))
        if not self.scroll_offset.y <= row < self.scroll_offset.y + self.size.height - 1:
            self.scroll_to(y=max(0, row - self.size.height // 2), animate=False)
        self.refresh()

    def _lay_out(self) -> None:
        self._rows, self._found, self.shown_count = [], [], 0
        self._wrap(0)

    def _wrap(self, first: int) -> None:
        width = self._width
        if not width:
            return
        folds = self.is_folded and not self._shows_all
        for number in range(first, len(self.lines)):
            text = self.lines[number].text
            if not self.filter.passes(text, self._levels[number]):
                continue
            self.shown_count += 1
            if folds and is_noise(text):
                is_next = bool(self._rows) and self._rows[-1][1] == FOLD
                head, _, count = self._rows.pop() if is_next else (number, FOLD, 0)
                self._rows.append((head, FOLD, count + 1))
            elif len(text) <= width and cell_len(text) <= width:
                self._rows.append((number, 0, len(text)))
            else:
                ends = list(accumulate(map(len, chop_cells(text, width))))
                self._rows += zip([number] * len(ends), [0, *ends], ends, strict=False)
        self._find_matches(first)
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()
        self.post_message(self.Changed())

    def _find_matches(self, first: int) -> None:
        self._found = [number for number in self._found if number < first]
        if self.searched:
            wanted = self.searched.casefold()
            shown = dict.fromkeys(row[0] for row in self._rows[bisect_left(self._rows, (first, 0, 0)) :])
            self._found += [number for number in shown if wanted in self.lines[number].text.casefold()]
        self.refresh_bindings()


def _levels(lines: Sequence[LogLine], before: Level) -> list[Level]:
    levels = []
    for line in lines:
        before = level_of(line.text, before)
        levels.append(before)
    return levels
