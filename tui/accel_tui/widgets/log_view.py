"""The engine's log, and those of other workers, followed while somebody looks at it."""

import threading
from dataclasses import dataclass
from pathlib import Path

from textual import on, work
from textual.events import Resize
from textual.message import Message
from textual.widgets import RichLog

from accel_tui.tail import Logs

LINES = 5000
"""How many lines are kept."""

POLL_SECONDS = 0.25

NOTHING = "Log: nothing logged yet"


class LogView(RichLog):
    """Follows a run's ``log.txt`` and its workers'; while it is hidden it reads and keeps nothing.

    Args:
        directory: The run's.
    """

    DEFAULT_CSS = """
    LogView {
        height: 1fr;
        padding: 0 1;
        border-title-color: $primary;
        border-title-style: bold;
        background: $background;
        scrollbar-size: 1 1;
        &:focus { background-tint: $foreground 0%; }
    }
    """

    @dataclass
    class Grown(Message):
        """The log has new lines."""

        lines: list[str]
        source: threading.Event

    def __init__(self, directory: Path, *, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        super().__init__(max_lines=LINES, min_width=1, wrap=True, id=id)
        self._directory = directory
        self._hidden = threading.Event()
        self._hidden.set()
        self._width = 0

    def on_mount(self) -> None:
        """Say what it is while there is nothing in it."""
        self.border_title = NOTHING

    def on_show(self) -> None:
        """Begin to follow."""
        if self._hidden.is_set():
            self._hidden = threading.Event()
            self._follow(self._hidden)

    def on_hide(self) -> None:
        """Read no more, and forget what was read."""
        self._hidden.set()
        self.clear()
        self.border_title = NOTHING

    def on_resize(self, event: Resize) -> None:
        """Wrap the lines anew where they are wider or narrower now: read them once more."""
        if event.size.width != self._width and not self._hidden.is_set():
            self.on_hide()
            self.on_show()
        self._width = event.size.width

    def on_unmount(self) -> None:
        """Let the thread end."""
        self._hidden.set()

    @work(thread=True, exclusive=True, exit_on_error=False, group="log")
    def _follow(self, hidden: threading.Event) -> None:
        logs = Logs(self._directory)
        while not hidden.is_set():
            if lines := logs.read():
                self.post_message(self.Grown(lines, hidden))
            else:
                hidden.wait(POLL_SECONDS)

    @on(Grown)
    def _show(self, message: Grown) -> None:
        message.stop()
        if not message.source.is_set():
            self.border_title = "Log"
            self.write("\n".join(message.lines), expand=True)  # as wide as the view, not as the console
