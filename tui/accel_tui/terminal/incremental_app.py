"""An app that writes only changed cells, and no faster than the terminal takes them.

Textual writes whole rows, and queues them for slow terminals.
"""

import asyncio
import math
import os
import time
from collections.abc import Callable
from functools import partial

from platformdirs import user_downloads_path
from rich.console import Console, RenderableType
from textual import events, on
from textual.screen import Screen
from textual.types import CSSPathType

from accel_engine.errors import format_error
from accel_engine.text import printable
from accel_engine.user_paths import current_directory
from accel_tui.terminal.canvas import Canvas
from accel_tui.terminal.textual_private import FrameApp, FrameUpdate, ScreenUpdate, strips_of

FAST_REPLY_SECONDS = 0.25
"""A terminal that replies within this time keeps up."""

REPLY_TIMEOUT_SECONDS = 5.0
"""A query without a reply after this time counts as lost; a stalled connection gets one frame per timeout."""

QUERY_INTERVAL_SECONDS = 0.5
"""Minimum interval between queries to a terminal that keeps up: a reply costs as much as a small frame."""

QUERY_INTERVAL_BYTES = 1024
"""A frame this large is followed by a query despite the interval."""

MAX_QUEUED_WRITES = 6
"""Maximum number of writes in the queue; a frame takes up to three."""


TMUX_SECONDS = 5.0
"""Seconds after which tmux counts as stuck."""


class FlowControl:
    """Decides when the next frame may be sent, from the round-trip time of queries.

    A frame may be followed by a query that the terminal answers after it. A terminal that keeps up is queried now and
    then, without waiting. For a slow one, the next frame waits until the last one has arrived, so the response to a
    key press is behind at most one frame. For a terminal that never replies, only the queue of writes counts.

    Args:
        clock: Monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._query_time: float | None = None
        self._round_trip = math.inf
        self._query_number = 0
        self._last_query_time = -math.inf
        self._bytes_since_query = 0

    def can_send(self, waiting: int) -> bool:
        """Whether a frame may be sent now.

        Args:
            waiting: Number of queued writes.
        """
        if waiting > MAX_QUEUED_WRITES:
            return False
        if self._query_time is None or math.isinf(self._round_trip):
            return True
        age = self._clock() - self._query_time
        if age > REPLY_TIMEOUT_SECONDS:
            self._query_time, self._round_trip = None, age
            return True
        return self._round_trip <= FAST_REPLY_SECONDS and age <= FAST_REPLY_SECONDS

    def frame_sent(self, length: int) -> int | None:
        """Record that a frame is sent.

        Args:
            length: Its size in bytes.

        Returns:
            The number of the query to send after it, a single digit; ``None`` if no query is needed or one is pending.
        """
        if self._query_time is not None:
            return None
        now = self._clock()
        self._bytes_since_query += length
        prompt = self._round_trip <= FAST_REPLY_SECONDS
        if (
            prompt
            and now - self._last_query_time < QUERY_INTERVAL_SECONDS
            and self._bytes_since_query < QUERY_INTERVAL_BYTES
        ):
            return None
        self._query_time = self._last_query_time = now
        self._bytes_since_query = 0
        self._query_number = self._query_number % 9 + 1
        return self._query_number

    @property
    def expects_reply(self) -> bool:
        """Whether a reply to a query is expected."""
        return self._query_time is not None and not math.isinf(self._round_trip)

    def reply_received(self, number: int) -> None:
        """Record a reply; replies to queries that were given up are ignored."""
        if self._query_time is not None and number == self._query_number:
            self._round_trip = self._clock() - self._query_time
            self._query_time = None


RETRY_SECONDS = 1 / 30
"""Seconds between two attempts to send a frame to a slow terminal."""

LAST_SECONDS = 0.5
"""Maximum seconds that exiting waits for the terminal's last reply."""

_CURSOR_QUERY = "\x1b[1;{}H\x1b[6n"
"""Queries the cursor position (ECMA-48, 8.3.35), which every terminal answers; the column is the query's number."""


class _CanvasUpdate(FrameUpdate):
    """A screen update that the canvas turns into bytes, followed by a query where one is due."""

    def __init__(self, canvas: Canvas, flow: FlowControl | None, update: ScreenUpdate) -> None:
        self._canvas = canvas
        self._flow = flow
        self._update = update

    def render_segments(self, console: Console) -> str:
        """The bytes that update the terminal."""
        painted = self._canvas.paint(strips_of(self._update), console)
        if not painted:
            return ""
        number = self._flow.frame_sent(len(painted)) if self._flow else None
        return f"{painted}{_CURSOR_QUERY.format(number) if number else ''}"


class IncrementalApp(FrameApp):
    """Paints through a canvas, with flow control.

    Args:
        css_path: CSS files, as Textual takes them.
    """

    def __init__(self, css_path: CSSPathType | None = None) -> None:
        # With NO_COLOR the terminal's own colours are kept; Textual would turn the others to grey.
        super().__init__(css_path=css_path, ansi_color="NO_COLOR" in os.environ or None)
        self._canvas = Canvas()
        self._flow = FlowControl()
        self._is_frame_pending = False
        self._pending_exit: Callable[[], None] | None = None

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard, in tmux by tmux, which ignores the sequence as it is set up."""
        super().copy_to_clipboard(text)
        if "TMUX" in os.environ:
            self.run_worker(partial(self._copy_by_tmux, text), thread=True, exit_on_error=False, group="copy")

    def _copy_by_tmux(self, text: str) -> None:
        """Load a text into tmux's buffer, which it sends to its own terminal, too."""
        import subprocess  # seldom needed

        command = ["tmux", "load-buffer", "-w", "-"]
        try:
            subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=TMUX_SECONDS)
        except subprocess.CalledProcessError as error:
            problem = error.stderr.decode(errors="replace").strip() or f"exit status {error.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = format_error(error)
        else:
            return
        title, said = "tmux has copied nothing", f"{' '.join(command)}: {printable(problem)}"
        self.notify(said, title=title, severity="error", markup=False)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Exit once the terminal has replied: a late reply would be typed into the shell."""
        leave = partial(super().exit, result, return_code, message)
        if not self._flow.expects_reply:
            leave()
        elif self._pending_exit is None:
            self._pending_exit = leave
            asyncio.get_running_loop().call_later(LAST_SECONDS, leave)  # not an app timer, since a signal may call this

    def action_suspend_process(self) -> None:
        """Suspend once the terminal has replied."""
        if self._pending_exit is None:
            self._pending_exit = self._suspend
            if self._flow.expects_reply:
                self.set_timer(LAST_SECONDS, self._suspend)
            else:
                self._suspend()

    def _suspend(self) -> None:
        if self._pending_exit == self._suspend:  # not twice
            self._pending_exit = None
            super().action_suspend_process()

    @on(events.Resize)
    def action_repaint(self) -> None:
        """Repaint the whole screen, e.g. after another program wrote to the terminal."""
        self._canvas.clear()
        self.screen.refresh()

    @on(events.CursorPosition)
    def _handle_cursor_report(self, event: events.CursorPosition) -> None:
        self._flow.reply_received(event.x + 1)
        if self._pending_exit:
            self._pending_exit()
        self._retry_frame()

    def frame(self, screen: "Screen[object]", update: ScreenUpdate) -> "_CanvasUpdate | None":
        """The update as painted by the canvas, if the terminal keeps up."""
        if self._is_frame_pending or screen.outer_size != self.size:
            # A full repaint follows, once the terminal keeps up or the screen has the terminal's new size. A terminal
            # clips what is beyond its edges, so that it would differ from the canvas.
            return None
        if self._flow.can_send(self.queued_writes):
            return _CanvasUpdate(self._canvas, None if self._pending_exit else self._flow, update)
        self._is_frame_pending = True
        self.set_timer(RETRY_SECONDS, self._retry_frame)
        return None

    def _retry_frame(self) -> None:
        if not self._is_frame_pending:
            return
        if self._flow.can_send(self.queued_writes):
            self._is_frame_pending = False
            self.screen.refresh()
        else:
            self.set_timer(RETRY_SECONDS, self._retry_frame)


class EarlyInputApp(IncrementalApp):
    """Keeps what is typed while a screen is being composed.

    Textual would run the priority bindings of a screen before it has any widgets, and give the other keys to none.
    """

    async def on_event(self, event: events.Event) -> None:
        """Let a key or a click wait for the screen."""
        screens = self.screen_stack
        if isinstance(event, events.InputEvent) and screens and not screens[-1].is_mounted:
            screens[-1].call_later(self.post_message, event)
        else:
            await super().on_event(event)


class ScreenshotApp(IncrementalApp):
    """Saves screenshots in the folder of downloads if there is one, else in the current one.

    Textual takes the former without looking, keeps failures to itself, and tells of success with markup.
    """

    def deliver_screenshot(
        self, filename: str | None = None, path: str | None = None, time_format: str | None = None
    ) -> str | None:
        """Save a picture of the screen, or send it to the browser; see Textual's own."""
        downloads = user_downloads_path()
        return super().deliver_screenshot(
            filename, path or str(downloads if downloads.is_dir() else current_directory()), time_format
        )

    def on_delivery_complete(self, event: events.DeliveryComplete) -> None:
        """Tell where the picture is."""
        event.prevent_default()
        self.notify("sent to the browser" if event.path is None else str(event.path), title="Screenshot saved")

    def on_delivery_failed(self, event: events.DeliveryFailed) -> None:
        """Tell why there is no picture."""
        event.prevent_default()
        self.notify(format_error(event.exception), title="Screenshot not saved", severity="error")
