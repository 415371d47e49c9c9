"""The list of the queue: runs that were started from it, then those that wait, in order; and the details of one."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import Static

from accel_engine.words import numbers
from accel_tui.formatting.queued_runs import devices_of, waits
from accel_tui.formatting.text import fit, shorten
from accel_tui.run_list.columns import SYMBOLS
from accel_tui.run_list.queue_rows import QueueRow
from accel_tui.widgets.cursor_table import CursorTable

GAP = 2
"""Cells between two columns."""

RUN_WIDTHS = (18, 36)
"""Least and most cells of a run's id."""

BAR = 16
"""Cells of a progress bar."""

_COLOURS = ("accent", "warning", "text-muted")


class QueueTable(CursorTable):
    """The queue; only visible lines are rendered. The cursor stays on its run while the order changes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"queue-table--{part}" for part in ("row", "header", "cursor", *_COLOURS)}
    DEFAULT_CSS = (
        """
    QueueTable {
        width: 1fr;
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
        & > .queue-table--row { color: $foreground; }
        & > .queue-table--header { color: $text-disabled; }
        & > .queue-table--cursor { color: $foreground; }
        &:focus > .queue-table--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    """
        + "".join(f"    & > .queue-table--{colour} {{ color: ${colour}; }}\n" for colour in _COLOURS)
        + "}"
    )
    BINDING_GROUP_TITLE = "List of the queue"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="queue.open", tooltip="Open the run"),
        Binding("j,down", "move(1)", "Next run", id="queue.down", show=False, tooltip="Go to the next run"),
        Binding("k,up", "move(-1)", "Previous run", id="queue.up", show=False, tooltip="Go to the previous run"),
        Binding("pagedown", "page(1)", id="queue.page-down", tooltip="Page down"),
        Binding("pageup", "page(-1)", id="queue.page-up", tooltip="Page up"),
        Binding("home", "move(-1000000)", id="queue.home", tooltip="First run"),
        Binding("end", "move(1000000)", id="queue.end", tooltip="Last run"),
    ]

    rows: reactive[tuple[QueueRow, ...]] = reactive((), repaint=False)
    """The runs."""

    @dataclass
    class Opened(Message):
        """A run should be opened."""

        row: QueueRow

    class SelectionChanged(Message):
        """The cursor or the rows have changed."""

    @property
    def current(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.rows[self._cursor] if self.rows else None

    def watch_rows(self, before: tuple[QueueRow, ...], rows: tuple[QueueRow, ...]) -> None:
        """Show other rows; the cursor stays on its run, or on its line if the run is gone."""
        kept = before[self._cursor].entry.run if before else ""
        runs = [row.entry.run for row in rows]
        self._cursor = runs.index(kept) if kept in runs else max(0, min(self._cursor, len(rows) - 1))
        self._show()

    @property
    def line_count(self) -> int:
        """Number of runs."""
        return len(self.rows)

    def cursor_moved(self, before: int) -> None:  # noqa: ARG002 (all lines may be others)
        """Repaint, and tell what the cursor is on."""
        self.refresh()
        self.post_message(self.SelectionChanged())

    def on_resize(self) -> None:
        """Lay the lines out for another width."""
        self._show()

    def action_open(self) -> None:
        """Open the current run."""
        if self.current:
            self.post_message(self.Opened(self.current))

    def on_click(self, event: Click) -> None:
        """Move to a run; a click on the current run opens it."""
        event.stop()
        line = self.scroll_offset.y + event.y - 1
        if event.y and 0 <= line < len(self.rows):
            if line == self._cursor:
                self.action_open()
            self.go_to(line)

    def _show(self) -> None:
        self.virtual_size = Size(max(1, self.size.width - 1), len(self.rows) + 1)
        self.go_to(self._cursor)

    def render_line(self, y: int) -> Strip:
        """The header, or a run."""
        if y == 0:
            header = Segment(self._joined("", "run", "prio", "devices") + "state", self._style("header"))
            return Strip([header]).adjust_cell_length(self.size.width, self._style("header"))
        line = self.scroll_offset.y + y - 1
        if line >= len(self.rows):
            return Strip.blank(self.size.width, self._style("row"))
        plain = self._style("cursor" if line == self._cursor else "row")
        return Strip(list(self._segments(self.rows[line], plain))).adjust_cell_length(self.size.width, plain)

    def _segments(self, row: QueueRow, plain: Style) -> Iterator[Segment]:
        """A row: its symbol, its columns, and its progress or why it waits."""
        entry = row.entry
        symbol, colour = SYMBOLS[row.status] if entry.is_started else ("‖", "warning") if entry.is_held else ("○", "")
        head = self._joined(str(entry.position or ""), entry.run, _priority(row), devices_of(entry))
        yield Segment(f" {symbol}", plain + self._style(colour) if colour in _COLOURS else plain)
        yield Segment(head[2:], plain)
        if entry.is_started:
            yield from self._progress(row, plain)
        else:
            room = max(self.size.width - len(head) - 2, 1)
            style = self._style("warning" if entry.is_held else "text-muted")
            yield Segment(shorten(waits(entry), room), plain + style)

    def _progress(self, row: QueueRow, plain: Style) -> Iterator[Segment]:
        if row.progress is not None:
            done = round(row.progress * BAR)
            yield Segment("━" * done, plain + self._style("accent"))
            yield Segment("─" * (BAR - done) + f" {int(100 * row.progress):3}%  ", plain)
        yield Segment(f"{row.status or 'cannot be read'}", plain)

    def _joined(self, position: str, run: str, priority: str, devices: str) -> str:
        """The columns before the last one, after room for a symbol; those that are empty in all rows are left out."""
        least, most = RUN_WIDTHS
        parts = [fit(position, 3, right=True), fit(run, max(least, min(most, self.size.width // 4)))]
        if any(map(_priority, self.rows)):
            parts.append(fit(priority, 4, right=True))
        if any(devices_of(row.entry) for row in self.rows):
            parts.append(fit(devices, 9))
        return "   " + (" " * GAP).join([*parts, ""])

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"queue-table--{part}", partial=part in _COLOURS)


def _priority(row: QueueRow) -> str:
    priority = row.entry.request.priority
    return f"{priority:+}" if priority else ""


class QueueDetail(Static):
    """Title, why it waits in full, command, and what it asks for."""

    DEFAULT_CSS = """
    QueueDetail {
        height: auto;
        min-height: 4;
        max-height: 7;
        padding: 0 1;
        border-top: solid $border;
    }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show_row(self, row: QueueRow | None) -> None:
        """Show the details of a run."""
        self.update(_detail(row) if row else Content(""))


def _detail(row: QueueRow) -> Content:
    entry, plan = row.entry, row.info.plan if row.info else None
    since = f"  queued {numbers.ago(time.time() - entry.added)}" if entry.added else ""
    lines = [Content.assemble((row.info.title if row.info else entry.run, "bold"), (since, "$text-muted"))]
    if entry.is_started:
        where = f" on {', '.join(entry.devices)}" if entry.devices else ""
        lines.append(Content(f"{row.status or 'cannot be read'}{where}, {numbers.counted(row.steps, 'step')}"))
    else:
        lines.append(Content.styled(_sentence(row), "$text-warning" if entry.is_held else ""))
    asks = [f"after {', '.join(entry.request.after)}"] if entry.request.after else []
    if entry.request.group:
        most = f", at most {entry.request.at_once} at once" if entry.request.at_once else ""
        asks.append(f"of {entry.request.group}{most}")
    if asks:
        lines.append(Content.styled("; ".join(asks), "$text-muted"))
    lines.append(Content(f"$ {plan.command()}" if plan else "the plan cannot be read on this machine"))
    return Content("\n").join(lines)


def _sentence(row: QueueRow) -> str:
    text = waits(row.entry)
    if row.entry.is_held:
        return text[:1].upper() + text[1:]
    return f"Waits: {text}" if row.entry.reason else "Waits"
