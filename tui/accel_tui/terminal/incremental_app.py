"""An app that sends its terminal only what changes there, and no faster than it arrives.

Textual sends whole rows of widgets, and queues what a terminal is too slow for. Both are decided where one
update of the screen becomes bytes, which is private to Textual: a version that does it otherwise than the
one known here paints its own way.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from textual import _compositor, events, on
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip
from textual.types import CSSPathType

from accel_tui.terminal.canvas import Canvas
from accel_tui.terminal.dirty_regions import DirtyRegions
from accel_tui.terminal.flow_control import FlowControl
from accel_tui.terminal.style_cache import StyleCache

RETRY_SECONDS = 1 / 30
"""How often it is looked whether a link that was full has room again."""

LAST_SECONDS = 0.5
"""How long leaving waits for the terminal's last answer."""

_QUESTION = "\x1b[1;{}H\x1b[6n"
"""Asks for the place of the cursor (ECMA-48, 8.3.35), which every terminal knows; its column tells which question."""

UNDERSTOOD = (
    all(hasattr(App, name) for name in ("_display", "_begin_update", "_end_update", "_background_screens"))
    and {"strips", "region"} <= signature(_compositor.LayoutUpdate).parameters.keys()
    and {"chops", "spans", "chop_ends"} <= signature(_compositor.ChopsUpdate).parameters.keys()
)
"""Whether this version of Textual describes updates of the screen as it is known here."""


UPDATES = _compositor.LayoutUpdate | _compositor.ChopsUpdate | DirtyRegions
"""The updates of the screen that are painted by way of the canvas."""


class _Painted(_compositor.CompositorUpdate):
    """An update that is turned into bytes by way of a canvas, with a question after it when it is time for one.

    What makes a frame of it is written with it: each write wakes the thread that writes.
    """

    def __init__(
        self,
        canvas: Canvas,
        link: FlowControl | None,
        update: _compositor.CompositorUpdate,
        frame: tuple[str, str],
        keep: Callable[[str], None] | None = None,
    ) -> None:
        self._canvas = canvas
        self._link = link
        self._update = update
        self._frame = frame
        self._keep = keep

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Nothing: an app takes updates of the screen by the other way."""
        del console, options
        return ()

    def render_segments(self, console: Console) -> str:
        """Give what changes the terminal."""
        painted = self._canvas.paint(pieces(self._update), console)
        if self._keep:
            self._keep(painted)
        if not painted:
            return ""
        number = self._link.sent(len(painted)) if self._link else None
        begin, end = self._frame
        return f"{begin}{painted}{_QUESTION.format(number) if number else ''}{end}"


class IncrementalApp(App[None]):
    """Paints by way of a canvas, while the link has room.

    Args:
        css_path: The sheets, as Textual takes them.
    """

    def __init__(self, css_path: CSSPathType | None = None) -> None:
        # Without colours, the terminal's own are all that there may be; Textual would make greys of others.
        super().__init__(css_path=css_path, ansi_color="NO_COLOR" in os.environ or None)
        self.stylesheet: StyleCache = StyleCache(variables=self.get_css_variables())
        self.keep_first_frame: Callable[[str], None] | None = None
        """What is told the first frame as it is sent to the terminal."""
        self._canvas = Canvas()
        self._link = FlowControl()
        self._held = False
        self._framing = True  # whether Textual says where a frame begins and ends
        self._leave: Callable[[], None] | None = None

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Leave, once the terminal has answered: its answer would else be typed into the shell."""
        leave = partial(super().exit, result, return_code, message)
        if not self._link.expects:
            leave()
        elif self._leave is None:
            self._leave = leave
            asyncio.get_running_loop().call_later(LAST_SECONDS, leave)  # a signal may ask for it: no timer of the app's

    def action_suspend_process(self) -> None:
        """Let the shell have the terminal; likewise once that has answered."""
        if self._leave is None:
            self._leave = self._suspend
            if self._link.expects:
                self.set_timer(LAST_SECONDS, self._suspend)
            else:
                self._suspend()

    def _suspend(self) -> None:
        if self._leave == self._suspend:  # not for the second time
            self._leave = None
            super().action_suspend_process()

    def send(self, words: str) -> None:
        """Send the terminal what is no part of the picture, between two frames."""
        if self._driver:
            self._driver.write(words)

    @on(events.Resize)
    def action_repaint(self) -> None:
        """Paint the whole screen anew, over whatever another program wrote there meanwhile."""
        self._canvas.forget()
        self.screen.refresh()

    @on(events.CursorPosition)
    def _take_answer(self, event: events.CursorPosition) -> None:
        self._link.answered(event.x + 1)
        if self._leave:
            self._leave()
        self._let_go()

    def _display(self, screen: "Screen[object]", renderable: RenderableType | None) -> None:
        # Textual's: every update of the screen comes by here.
        if not UNDERSTOOD or not isinstance(renderable, UPDATES):
            super()._display(screen, renderable)
        elif self._held or screen.outer_size != self.size:
            # The whole screen follows: once there is room, or once the screen has the terminal's new size. A terminal
            # puts what is beyond its edges on them, over what the canvas has there.
            return
        elif self._link.has_room(self._waiting):
            link = None if self._leave else self._link
            keep, self.keep_first_frame = self.keep_first_frame, None
            self._framing, frame = False, (SYNC_START, SYNC_END) if self._sync_available else ("", "")
            super()._display(screen, _Painted(self._canvas, link, renderable, frame, keep))
            self._framing = True
        else:
            self._held = True
            self.set_timer(RETRY_SECONDS, self._let_go)

    @property
    def _background_screens(self) -> "list[Screen[Any]]":
        # Textual's: what is painted anew where one of these changes. It counts a screen that is covered entirely.
        covers = bool(self._screen_stack) and self.screen.styles.background.a == 1
        return [] if covers else super()._background_screens

    def _begin_update(self) -> None:
        if self._framing:
            super()._begin_update()

    def _end_update(self) -> None:
        if self._framing:
            super()._end_update()

    def _let_go(self) -> None:
        if not self._held:
            return
        if self._link.has_room(self._waiting):
            self._held = False
            self.screen.refresh()
        else:
            self.set_timer(RETRY_SECONDS, self._let_go)

    @property
    def _waiting(self) -> int:
        """Writes that Textual's thread has not come to; 0 where a driver has no such thread."""
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return queue.qsize() if queue else 0


def pieces(update: _compositor.CompositorUpdate) -> Iterator[tuple[int, int, Strip]]:
    """What an update paints: row, column of the first cell, and the strip, cut to what is to be painted."""
    if isinstance(update, _compositor.LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield y, x, strip
                x += strip.cell_length
    elif isinstance(update, DirtyRegions):
        yield from update.pieces
    elif isinstance(update, _compositor.ChopsUpdate):
        for y, first, last in update.spans:
            for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if chop is not None and start < stop:
                    yield y, start, chop.crop(start - x, stop - x)
