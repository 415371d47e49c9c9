"""The logs of the engine and of other workers, with search and filter."""

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

from accel_engine.words.numbers import counted
from accel_tui.run_state.log_tail import LogLine, Logs
from accel_tui.run_state.log_text import NAMES, EpochLines, Filter, Level
from accel_tui.run_state.state import RunState
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.list_keys import custom_keys
from accel_tui.widgets.log.log_lines import LogLines
from accel_tui.widgets.visibility import is_covered

POLL_SECONDS = 0.25
"""Seconds between two reads."""

BUSY_SECONDS = 0.05
"""Seconds between two reads while there is more."""

AT_ONCE = 200
"""Maximum number of lines per message, so that keys are handled in between."""

_PROMPTS = {"search": "search", "filter": "filter"}


class LogView(Widget):
    """Follows a run's ``log.txt`` and its workers' while visible; reads nothing while hidden.

    Args:
        directory: The run's directory.
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
    BINDING_GROUP_TITLE = "Log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="log.search", tooltip="Search the log"),
        Binding(
            "ampersand",
            "filter",
            "Filter",
            id="log.filter",
            tooltip="Show only lines with some words and without -others",
        ),
        Binding("L", "level", "Level", id="log.level", tooltip="Show all lines, warnings and errors, or only errors"),
        Binding(
            "escape",
            "close",
            "Close",
            id="log.close",
            tooltip="Cancel the input, then clear the search, then the filter",
        ),
    ]

    asking: reactive[str] = reactive("", repaint=False, init=False)
    """What the input asks for: ``search``, ``filter``, or empty if closed."""

    has_ended: reactive[bool] = reactive(False, repaint=False, init=False)
    """Whether the run has ended."""

    lines = getters.query_one(LogLines)
    _input = getters.query_one("#log-input", Input)

    @dataclass
    class LinesAdded(Message):
        """The log has new lines."""

        lines: list[LogLine]
        source: threading.Event
        is_last: bool = False
        """Whether these are the last ones for now."""

    @dataclass
    class OlderRead(Message):
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
        self._is_loading_older = False
        self._state = RunState()
        self._epochs = EpochLines()
        self._has_read = False  # what was there when it was opened

    def compose(self) -> ComposeResult:
        with Horizontal(id="log-bar"):
            yield Static(id="log-words", markup=False)
            yield Label(id="log-asked", markup=False)
            yield LineInput(id="log-input", compact=True)
            for action in ("search", "filter", "level"):
                yield Label(id=f"log-{action}", classes="log-key", markup=False)
        yield LogLines()

    def on_show(self) -> None:
        if self._hidden.is_set():
            self._hidden = threading.Event()
            self._logs = Logs(self._directory)
            self._is_loading_older = self._has_read = False
            self._epochs = EpochLines()
            self._epochs.take(self._state)
            self.lines.clear()
            self._follow(self._logs, self._hidden)

    def on_hide(self) -> None:
        """Stop reading, and drop the lines."""
        self._hidden.set()
        self.lines.clear_buffer()

    def on_unmount(self) -> None:
        self._hidden.set()

    def set_state(self, state: RunState) -> None:
        """Show the epochs that have ended since."""
        self._state, self.has_ended = state, state.has_ended
        if not self._hidden.is_set():
            self._epochs.take(state)
            if self._has_read and (lines := self._epochs.rest()):
                self.lines.add(lines)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Handle escape only while there is something to close."""
        return bool(self.asking or self.lines.searched or self.lines.filter != Filter()) if action == "close" else True

    def action_search(self) -> None:
        self._open_input("search", self.lines.searched)

    def action_filter(self) -> None:
        self._open_input("filter", self.lines.filter.words)

    def action_level(self) -> None:
        """Cycle the level: all, warnings and errors, errors."""
        levels = list(Level)
        level = levels[(self.lines.filter.level + 1) % len(levels)]
        self.lines.show_only(replace(self.lines.filter, level=level))

    def action_close(self) -> None:
        """Cancel the input, else clear the search, else the filter."""
        if self.asking:
            self._apply_input(self._before)
            self._close_input()
        elif self.lines.searched:
            self.lines.search("")
        else:
            self.lines.show_only(Filter())
        self.refresh_bindings()

    def watch_asking(self) -> None:
        self.set_class(bool(self.asking), "-asking")
        self.refresh_bindings()

    def watch_has_ended(self) -> None:
        self._update_bar()

    @on(Click, ".log-key")
    def _clicked(self, event: Click) -> None:
        event.stop()
        assert event.widget is not None and event.widget.id  # noqa: S101, PT018 (it matched)
        getattr(self, f"action_{event.widget.id.removeprefix('log-')}")()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.asking:
            self._apply_input(event.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_input()

    @on(LogLines.Changed)
    def _changed(self, message: LogLines.Changed) -> None:
        message.stop()
        self._update_bar()

    @on(LogLines.LinesWanted)
    def _wanted(self, message: LogLines.LinesWanted) -> None:
        message.stop()
        if not message.older:
            self.on_hide()
            self.on_show()
            return
        first = next((line.at for line in self.lines.lines if line.at is not None), 0)
        if first and not self._is_loading_older:
            self._is_loading_older = True
            self._load_older(self._logs, first, self._hidden)

    @work(thread=True, exclusive=True, exit_on_error=False, group="log")
    def _follow(self, logs: Logs, hidden: threading.Event) -> None:
        while not hidden.is_set():
            lines = [] if is_covered(self.screen) else logs.read()
            for start in range(0, max(len(lines), 1), AT_ONCE):
                if lines or not self._has_read:
                    part = lines[start : start + AT_ONCE]
                    self.post_message(self.LinesAdded(part, hidden, is_last=start + AT_ONCE >= len(lines)))
            hidden.wait(BUSY_SECONDS if lines else POLL_SECONDS)

    @work(thread=True, exit_on_error=False, group="log-older")
    def _load_older(self, logs: Logs, at: int, hidden: threading.Event) -> None:
        self.post_message(self.OlderRead(logs.read_before(at), hidden))

    @on(LinesAdded)
    def _add(self, message: LinesAdded) -> None:
        message.stop()
        if not message.source.is_set() and self.is_on_screen:
            self._has_read |= message.is_last
            added = self._epochs.merged(message.lines)
            self.lines.add(added + self._epochs.rest() if self._has_read else added)

    @on(OlderRead)
    def _add_older(self, message: OlderRead) -> None:
        message.stop()
        if not message.source.is_set():
            self._is_loading_older = False
            self.lines.add_older(message.lines)

    def _open_input(self, what: str, text: str) -> None:
        self.asking, self._before = "", text
        self._input.value = text
        self.query_one("#log-asked", Label).update(f"{_PROMPTS[what]}:")
        self.asking = what
        self._input.focus()

    def _apply_input(self, text: str) -> None:
        if self.asking == "search":
            self.lines.search(text)
        else:
            self.lines.show_only(replace(self.lines.filter, words=text))

    def _close_input(self) -> None:
        self.lines.focus()
        self.asking = ""

    def _update_bar(self) -> None:
        """Show the number of lines, the search and the filter."""
        lines = self.lines
        if not lines.lines:
            words = "no output" if self.has_ended else "no output yet"
        else:
            all_of_them = counted(len(lines.lines), "line")
            words = all_of_them if lines.filter == Filter() else f"{lines.shown_count:,} of {all_of_them}"
            words += ", following" if lines.follows else ""
        position, found = lines.found
        searched = f" {lines.searched} {f'{position}/' if position else ''}{found}" if lines.searched else ""
        wanted = f" {lines.filter.words}" if lines.filter.words else ""
        mark = "▸ " if self.has_focus_within else ""
        self.query_one("#log-words", Static).update(
            Content.assemble((mark, "$accent"), ("Log", "bold $primary"), f": {words}")
        )
        keys = custom_keys(self)
        for action, key, label in (
            ("search", "/", searched or " search"),
            ("filter", "&", wanted or " filter"),
            ("level", "L", f" {NAMES[lines.filter.level]}"),
        ):
            shown = (keys.get(action, key), "$accent")
            self.query_one(f"#log-{action}", Label).update(Content.assemble(shown, label))

    on_mount = on_descendant_focus = on_descendant_blur = _update_bar
