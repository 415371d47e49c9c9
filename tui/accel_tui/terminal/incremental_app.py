"""An app that writes only changed cells, and no faster than the terminal takes them.

Textual writes whole rows, and queues them for slow terminals. This overrides private methods of Textual's; with a
version of Textual that lacks them, Textual paints in its own way.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from textual import _compositor, events, on
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip
from textual.types import CSSPathType

from accel_tui.terminal.canvas import Canvas
from accel_tui.terminal.dirty_regions import DirtyRegions
from accel_tui.terminal.flow_control import FlowControl

RETRY_SECONDS = 1 / 30
"""Seconds between two attempts to send a frame to a slow terminal."""

LAST_SECONDS = 0.5
"""Maximum seconds that exiting waits for the terminal's last reply."""

_CURSOR_QUERY = "\x1b[1;{}H\x1b[6n"
"""Queries the cursor position (ECMA-48, 8.3.35), which every terminal answers; the column is the query's number."""

TEXTUAL_SUPPORTED = (
    all(hasattr(App, name) for name in ("_display", "_background_screens"))
    and {"strips", "region"} <= signature(_compositor.LayoutUpdate).parameters.keys()
    and {"chops", "spans", "chop_ends"} <= signature(_compositor.ChopsUpdate).parameters.keys()
)
"""Whether this version of Textual has the private attributes that are used here."""


UPDATES = _compositor.LayoutUpdate | _compositor.ChopsUpdate | DirtyRegions
"""Screen updates that the canvas paints."""


class _CanvasUpdate(_compositor.CompositorUpdate):
    """A screen update that the canvas turns into bytes, followed by a query where one is due."""

    def __init__(
        self,
        canvas: Canvas,
        flow: FlowControl | None,
        update: _compositor.CompositorUpdate,
    ) -> None:
        self._canvas = canvas
        self._flow = flow
        self._update = update

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render nothing: apps use :meth:`render_segments`."""
        del console, options
        return ()

    def render_segments(self, console: Console) -> str:
        """The bytes that update the terminal."""
        painted = self._canvas.paint(strips_of(self._update), console)
        if not painted:
            return ""
        number = self._flow.frame_sent(len(painted)) if self._flow else None
        return f"{painted}{_CURSOR_QUERY.format(number) if number else ''}"


class IncrementalApp(App[None]):
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

    def send(self, words: str) -> None:
        """Write a control sequence to the terminal, between two frames."""
        if self._driver:
            self._driver.write(words)

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

    def _display(self, screen: "Screen[object]", renderable: RenderableType | None) -> None:
        # Overrides Textual's method that every screen update passes through.
        if not TEXTUAL_SUPPORTED or not isinstance(renderable, UPDATES):
            super()._display(screen, renderable)
        elif self._is_frame_pending or screen.outer_size != self.size:
            # A full repaint follows, once the terminal keeps up or the screen has the terminal's new size. A terminal
            # clips what is beyond its edges, so that it would differ from the canvas.
            return
        elif self._flow.can_send(self._queued_writes):
            flow = None if self._pending_exit else self._flow
            super()._display(screen, _CanvasUpdate(self._canvas, flow, renderable))
        else:
            self._is_frame_pending = True
            self.set_timer(RETRY_SECONDS, self._retry_frame)

    @property
    def _background_screens(self) -> "list[Screen[Any]]":
        # Overrides Textual's list of screens to repaint, which includes screens that are fully covered.
        covers = bool(self._screen_stack) and self.screen.styles.background.a == 1
        return [] if covers else super()._background_screens

    def _retry_frame(self) -> None:
        if not self._is_frame_pending:
            return
        if self._flow.can_send(self._queued_writes):
            self._is_frame_pending = False
            self.screen.refresh()
        else:
            self.set_timer(RETRY_SECONDS, self._retry_frame)

    @property
    def _queued_writes(self) -> int:
        """Number of writes in the queue of Textual's writer thread; 0 for drivers without one."""
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return queue.qsize() if queue else 0


def strips_of(update: _compositor.CompositorUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Rows, first columns and strips of an update, cropped to what changes."""
    if isinstance(update, _compositor.LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield y, x, strip
                x += strip.cell_length
    elif isinstance(update, DirtyRegions):
        yield from update.strips
    elif isinstance(update, _compositor.ChopsUpdate):
        for y, first, last in update.spans:
            for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if chop is not None and start < stop:
                    yield y, start, chop.crop(start - x, stop - x)
