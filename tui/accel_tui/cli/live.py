"""Draws lines of a command again in place on a terminal: progress, bars and tables, below lines that stay."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.appearance.glyphs import has_unicode
from accel_tui.cli.output import print_to_stderr

Size = Callable[[], tuple[int, int]]
"""Tells the columns and the lines of a terminal."""

TEXT_WIDTH = 68
"""Columns reserved for the text next to a bar."""

MAX_BAR = 40
"""The most columns of a bar."""


def is_live(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can be drawn on."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class LiveArea:
    """Lines at the end of a terminal's output that are drawn again in place.

    Args:
        stream: The terminal.
        size: Tells its present size.
    """

    def __init__(self, stream: TextIO, size: Size = shutil.get_terminal_size) -> None:
        self._console = _Console(stream)
        self._size = size
        self._live: Live | None = None
        self._drawn: list[list[Segment]] = []

    @property
    def width(self) -> int:
        """Columns of a line: there is room for ^C, and a full line would wrap, and could not be drawn over."""
        return max(self._size()[0] - 3, 1)

    @property
    def has_unicode(self) -> bool:
        """Whether the terminal shows more than ASCII."""
        return self._console.encoding == "utf-8"

    def show(self, shown: RenderableType | None, lines: Iterable[RenderableType] = ()) -> None:
        """Write lines that stay, and draw what is below them; nothing for ``None``."""
        self._console.size = (self.width, max(self._size()[1] - 1, 1))
        above = [printable(line) if isinstance(line, str) else line for line in lines]
        if shown is None:
            self.clear()
        with self._console:  # as one write
            if shown is not None and self._live is None:
                self._live = self._start(shown)
            if above:
                self._console.print(*above, sep="\n", soft_wrap=True)
            if self._live is not None and shown is not None:
                before, self._drawn = self._drawn, self._console.render_lines(shown, pad=False)
                self._live.update(shown, refresh=self._drawn != before and bool(before or not above))
        self._console.file.flush()

    def _start(self, shown: RenderableType) -> Live:
        live = Live(
            shown,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        live.start()
        return live

    def clear(self) -> None:
        """Erase what is drawn, until it is shown again."""
        self._stop(stays=False)

    def leave(self) -> None:
        """Let what is drawn stay."""
        self._stop(stays=True)

    def _stop(self, *, stays: bool) -> None:
        if self._live is not None:
            self._live.transient = not stays
            self._live.stop()
            self._live, self._drawn = None, []


class StatusLine:
    """A line on standard error that is overwritten, on a terminal; elsewhere, a line for what begins.

    Args:
        stream: Standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._live = LiveArea(stream) if is_live(stream) else None

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        if self._live:
            self._live.show(cut_line(text))

    def begin(self, text: str) -> None:
        """Note that something begins, in another line, unless :meth:`show` shows it."""
        if not self._live:
            print_to_stderr(text)

    def clear(self) -> None:
        """Remove the text."""
        if self._live:
            self._live.clear()


@contextmanager
def reading_bar(stream: TextIO) -> Iterator[Callable[[int, int], None]]:
    """Draw how much of data is read, on a terminal; elsewhere nothing.

    Yields:
        Takes the number of examples that are read, and of all; 0 if that is unknown.
    """
    area = LiveArea(stream) if is_live(stream) else None

    def show(done: int, total: int) -> None:
        if area is not None:
            of = f" of {numbers.count(total)}" if total else ""
            text = f"{numbers.count(done)}{of} examples read"
            area.show(with_bar(done / total, text, area.width) if total else cut_line(text))

    try:
        yield show
    finally:
        if area is not None:
            area.clear()


def with_bar(share: float, text: str, width: int) -> RenderableType:
    """A bar with a text beside it, or the text alone if there is hardly room.

    Args:
        share: How much of it is done, 0 to 1.
        text: The text, which is cut to the room that is left.
        width: Columns of both.
    """
    if width < TEXT_WIDTH // 2:
        return cut_line(text)
    line = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(
        1.0, share, width=bar_width(width), style="bright_black", complete_style="green", finished_style="green"
    )
    line.add_row(bar, cut_line(text))
    return line


def bar_width(width: int) -> int:
    """Columns of a bar in a line; independent of the text, so that the bar keeps its width."""
    return min(max(width - TEXT_WIDTH, 4), MAX_BAR)


def cut_line(text: str) -> Text:
    """A text that is cut to the line."""
    return Text(printable_line(text), no_wrap=True, overflow="crop")


class _Console(Console):
    """Sends a terminal no control sequences but rich's own, whatever a text has.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(file=stream, force_terminal=True, markup=False, highlight=False, emoji=False)
        self._has_unicode = has_unicode(os.environ, stream.encoding or "")

    @property
    def encoding(self) -> str:
        """Bars are of ASCII where the terminal or the locale has nothing else."""
        return "utf-8" if self._has_unicode else "ascii"

    @property
    def is_dumb_terminal(self) -> bool:
        """The command has found a terminal that it can draw on."""
        return False

    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor visible: a command that is killed could not show it again."""
        return False

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean all text as the last thing."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
