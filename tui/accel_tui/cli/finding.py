"""What the commands of ``accel-tui find`` share: Ctrl-C, live progress, plots in characters, lines of JSON."""

import math
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from accel_engine.text import printable_line
from accel_tui.appearance.glyphs import has_unicode

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

PLOT_ROWS = 14
MAX_COLUMNS = 100


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set; they raise no exception, so that no engine is left behind."""
    interrupted = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(each, lambda *_: interrupted.set()) for each in signals]
    try:
        yield interrupted
    finally:
        for each, handler in zip(signals, previous, strict=True):
            signal.signal(each, handler)


class Status:
    """A line on standard error that is overwritten, on a terminal; nothing is shown elsewhere.

    Args:
        stream: Standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown = ""

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        text = printable_line(text)[: columns() - 1]
        if self._is_terminal and text != self._shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
            self._shown = text

    def clear(self) -> None:
        """Remove the text."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""


def columns() -> int:
    """Columns of the terminal, or 80 without one."""
    return shutil.get_terminal_size((80, 24)).columns


def plot_width() -> int:
    """The width of a plot in columns."""
    return min(columns(), MAX_COLUMNS)


def readable(text: str) -> str:
    """A text in characters that the output has."""
    if has_unicode(os.environ, sys.stdout.encoding or ""):
        return text
    from accel_tui.appearance.glyphs import to_ascii

    return to_ascii(text)


def number(value: float | None) -> float | None:
    """A number for JSON, which has none that are not finite."""
    return None if value is None or not math.isfinite(value) else value
