"""The engine's log, and those of other workers: followed while somebody looks at it, searched and filtered."""

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from accel_tui.run.log_tail import LogLine, Logs
from accel_tui.run.log_text import NAMES, Filter, Level
from accel_tui.widgets.custom_keys import custom_keys
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.log.log_lines import LogLines
from accel_tui.widgets.visibility import is_covered

POLL_SECONDS = 0.25
"""Seconds between two looks for new lines."""

BUSY_SECONDS = 0.05
"""Likewise while there are more each time."""

AT_ONCE = 200
"""How many lines are handed over together: a key may come between two such parts."""

NOTHING = "nothing logged yet"

_ASKED = {"search": "search", "filter": "only lines with"}


class LogView(Widget):
    """Follows a run's ``log.txt`` and its workers'; while it is hidden it reads and keeps nothing.

    Args:
        directory: The run's.
    """

    DEFAULT_CSS = """
    LogView {
        height: 1fr;
        layout: vertical;

        #log-bar { height: 1; padding: 0 1; background: $surface; }
        #log-words { width: 1fr; height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        #log-asked { width: auto; color: $accent; margin: 0 1 0 0; display: none; }
        #log-input { width: 1fr; height: 1; display: none; }
        .log-key { width: auto; margin: 0 0 0 2; color: $text-muted; }
        .log-key:hover { color: $foreground; }
        &.-asking #log-words { display: none; }
        &.-asking #log-asked, &.-asking #log-input { display: block; }
    }
    """
    BINDING_GROUP_TITLE = "In the log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="log.search", tooltip="Mark a text in the log, and go to it"),
        Binding(
            "ampersand", "filter", "Filter", id="log.filter", tooltip="Show only lines with some words, without -others"
        ),
        Binding("L", "level", "Level", id="log.level", tooltip="Show all lines, warnings and errors, or errors alone"),
        Binding("escape", "close", "Close", id="log.close", tooltip="End asking, then the search, then the filter"),
    ]

    asking: reactive[str] = reactive("", repaint=False, init=False)
    """What is being asked for: ``search``, ``filter`` or nothing."""

    lines = getters.query_one(LogLines)
    _input = getters.query_one("#log-input", Input)

    @dataclass
    class Grown(Message):
        """The log has new lines."""

        lines: list[LogLine]
        source: threading.Event

    @dataclass
    class Dug(Message):
        """Older lines were read."""

        lines: list[LogLine]
        source: threading.Event

    def __init__(self, directory: Path, *, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        super().__init__(id=id)
        self._logs = Logs(directory)
        self._directory = directory
        self._hidden = threading.Event()
        self._hidden.set()
        self._before = ""
        self._digs = False

    def compose(self) -> ComposeResult:
        """What is shown and what can be done with it, above the lines."""
        with Horizontal(id="log-bar"):
            yield Static(id="log-words", markup=False)
            yield Label(id="log-asked", markup=False)
            yield LineInput(id="log-input", compact=True)
            for action in ("search", "filter", "level"):
                yield Label(id=f"log-{action}", classes="log-key", markup=False)
        yield LogLines()

    def on_mount(self) -> None:
        """Say what there is."""
        self._tell()

    def on_show(self) -> None:
        """Begin to follow."""
        if self._hidden.is_set():
            self._hidden = threading.Event()
            self._logs = Logs(self._directory)
            self._digs = False
            self.lines.clear()
            self._follow(self._logs, self._hidden)

    def on_hide(self) -> None:
        """Read no more, and forget what was read."""
        self._hidden.set()
        self.lines.forget()

    def on_unmount(self) -> None:
        """Let the thread end."""
        self._hidden.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the log's own while there is something to end."""
        del parameters
        return bool(self.asking or self.lines.searched or self.lines.filter != Filter()) if action == "close" else True

    def action_search(self) -> None:
        """Ask what to search."""
        self._ask("search", self.lines.searched)

    def action_filter(self) -> None:
        """Ask which lines to show."""
        self._ask("filter", self.lines.filter.words)

    def action_level(self) -> None:
        """Show the next level: all, warnings and errors, errors."""
        levels = list(Level)
        level = levels[(self.lines.filter.level + 1) % len(levels)]
        self.lines.show_only(replace(self.lines.filter, level=level))

    def action_close(self) -> None:
        """End asking, with what was there before; else the search; else the filter."""
        if self.asking:
            self._take(self._before)
            self._go_back()
        elif self.lines.searched:
            self.lines.search("")
        else:
            self.lines.show_only(Filter())
        self.refresh_bindings()

    def watch_asking(self) -> None:
        """Show where it is typed."""
        self.set_class(bool(self.asking), "-asking")
        self.refresh_bindings()

    def on_descendant_focus(self) -> None:
        """Mark the log, as a chart is."""
        self._tell()

    def on_descendant_blur(self) -> None:
        """No longer mark it."""
        self._tell()

    @on(Click, ".log-key")
    def _clicked(self, event: Click) -> None:
        event.stop()
        assert event.widget is not None and event.widget.id  # noqa: S101, PT018 (it matched)
        getattr(self, f"action_{event.widget.id.removeprefix('log-')}")()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.asking:
            self._take(event.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self._go_back()

    @on(LogLines.Changed)
    def _changed(self, message: LogLines.Changed) -> None:
        message.stop()
        self._tell()

    @on(LogLines.Wanted)
    def _wanted(self, message: LogLines.Wanted) -> None:
        message.stop()
        if not message.older:
            self.on_hide()
            self.on_show()
            return
        first = next((line.at for line in self.lines.lines if line.at is not None), 0)
        if first and not self._digs:
            self._digs = True
            self._dig(self._logs, first, self._hidden)

    @work(thread=True, exclusive=True, exit_on_error=False, group="log")
    def _follow(self, logs: Logs, hidden: threading.Event) -> None:
        while not hidden.is_set():
            lines = [] if is_covered(self.screen) else logs.read()
            for start in range(0, len(lines), AT_ONCE):
                self.post_message(self.Grown(lines[start : start + AT_ONCE], hidden))
            hidden.wait(BUSY_SECONDS if lines else POLL_SECONDS)

    @work(thread=True, exit_on_error=False, group="log-older")
    def _dig(self, logs: Logs, at: int, hidden: threading.Event) -> None:
        self.post_message(self.Dug(logs.before(at), hidden))

    @on(Grown)
    def _add(self, message: Grown) -> None:
        message.stop()
        if not message.source.is_set() and self.is_on_screen:
            self.lines.add(message.lines)

    @on(Dug)
    def _add_older(self, message: Dug) -> None:
        message.stop()
        if not message.source.is_set():
            self._digs = False
            self.lines.add_older(message.lines)

    def _ask(self, what: str, text: str) -> None:
        self.asking, self._before = "", text
        self._input.value = text
        self.query_one("#log-asked", Label).update(f"{_ASKED[what]}:")
        self.asking = what
        self._input.focus()

    def _take(self, text: str) -> None:
        if self.asking == "search":
            self.lines.search(text)
        else:
            self.lines.show_only(replace(self.lines.filter, words=text))

    def _go_back(self) -> None:
        self.lines.focus()
        self.asking = ""

    def _tell(self) -> None:
        """Say how much is shown, and what is searched."""
        lines = self.lines
        if not lines.lines:
            words = NOTHING
        else:
            all_of_them = f"{len(lines.lines):,} lines"
            words = all_of_them if lines.filter == Filter() else f"{lines.passing:,} of {all_of_them}"
            words += ", following" if lines.follows else ""
        place, found = lines.found
        searched = f" {lines.searched} {f'{place}/' if place else ''}{found}" if lines.searched else ""
        wanted = f" {lines.filter.words}" if lines.filter.words else ""
        mark = "▸ " if self.has_focus_within else ""
        self.query_one("#log-words", Static).update(
            Content.assemble((mark, "$accent"), ("Log", "bold $primary"), f": {words}")
        )
        keys = custom_keys(self)
        for action, key, said in (
            ("search", "/", searched or " search"),
            ("filter", "&", wanted or " filter"),
            ("level", "L", f" {NAMES[lines.filter.level]}"),
        ):
            shown = (keys.get(action, key), "$accent")
            self.query_one(f"#log-{action}", Label).update(Content.assemble(shown, said))
