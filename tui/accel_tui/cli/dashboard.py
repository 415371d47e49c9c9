"""Opening the dashboard on a terminal, and giving the terminal back as it was found."""

import contextlib
import gc
import io
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from accel_engine.errors import AccelError, UsageError
from accel_engine.text import printable
from accel_tui.cli.output import print_line
from accel_tui.terminal.saved_frame import SavedFrame

RESET = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[0m"
"""Leaves the alternate screen, shows the cursor, and ends mouse, focus, paste and key reports."""

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""What textual-serve has its programs show themselves with."""


def has_terminal() -> bool:
    """Whether a dashboard can be shown here."""
    return _is_served() or (_is_on_terminal() and os.environ.get("TERM", "dumb") != "dumb")


def open_dashboard(run: Path | None = None) -> int:
    """Show the dashboard until the user leaves it.

    Args:
        run: The directory of a run to open it on.

    Returns:
        The status for the shell.

    Raises:
        UsageError: This is no terminal, or one that cannot show it.
    """
    if not has_terminal():
        where = f"one of TERM={os.environ.get('TERM', '')!r}" if _is_on_terminal() else "none"
        raise UsageError(
            f"the dashboard needs a full terminal, and this is {where}\n"
            "Train without it: accel-tui train. Follow a run: accel-tui watch RUN --plain."
        )
    gc.disable()  # next to nothing of what is made before the first paint is garbage; the app enables it again

    last_words = io.StringIO()
    with contextlib.nullcontext() if _is_served() else _terminal_kept():
        frame = SavedFrame() if run is None and _is_on_terminal() else None
        if frame:
            frame.show()
        status = _run(run, frame, last_words)
    return _farewell(status, last_words.getvalue())


def _run(run: Path | None, frame: SavedFrame | None, last_words: TextIO) -> int:
    # All of this is slow to import, and comes after the frame that may be shown already.
    import asyncio

    from accel_tui.appearance.colours import obey
    from accel_tui.appearance.glyphs import resolve
    from accel_tui.settings.user_settings import SettingsError, load

    # Before Textual is imported, which reads the environment then.
    settings = resolve(obey(load(), os.environ), os.environ, getattr(sys.__stderr__, "encoding", "ascii"))

    from rich.console import Console
    from textual.scrollbar import ScrollBarRender

    from accel_tui.app import AccelApp
    from accel_tui.settings.keymap import theme_mistakes
    from accel_tui.terminal.driver import DisconnectSafeDriver, SavedFrameDriver

    if mistakes := theme_mistakes(settings):
        raise SettingsError(mistakes)
    if settings.glyphs == "ascii":  # which has nothing like the eighths of a cell that a bar ends with
        ScrollBarRender.VERTICAL_BARS = ScrollBarRender.HORIZONTAL_BARS = [" "] * 8
    with asyncio.Runner() as runner:
        app = AccelApp(open_run=run, settings=settings)
        if frame:
            app.keep_first_frame = frame.keep
        if not _is_served():
            app.driver_class = SavedFrameDriver if frame and frame.is_shown else DisconnectSafeDriver
        app.error_console = Console(file=last_words, width=100, markup=False, highlight=False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            runner.get_loop().add_signal_handler(number, app.exit)
        threading.Thread(target=_await_hang_up, name="hang-up", daemon=True).start()
        runner.run(app.run_async())
    if app.refusal is not None:
        raise app.refusal
    return app.return_code or 0


def _farewell(status: int, words: str) -> int:
    """Pass on what the dashboard said last; of a crash, a line and where the rest is."""
    if status == 0 or os.environ.get("ACCEL_TUI_DEBUG"):
        sys.stderr.write(printable(words))
        return status
    from accel_engine.run.paths import home  # with all that runs are made of, slow to import

    message = "the dashboard crashed; runs go on without it"
    with contextlib.suppress(OSError, AccelError):
        report = home() / "crash.txt"
        report.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        report.touch(mode=0o600)
        report.write_text(words, encoding="utf-8")
        message += f"\nPlease report it in the project's issue tracker, with {report}"
    print_line(message)
    return status


def _await_hang_up() -> None:
    """Pass on that the terminal is gone, also to a process whose own it was not, which no signal tells.

    Textual's reader would otherwise read the end of the input for ever, on a whole core.
    """
    watched = select.poll()
    watched.register(sys.stdin, 0)  # hang-ups and errors are always reported
    if any(event & select.POLLHUP for _, event in watched.poll()):
        os.kill(os.getpid(), signal.SIGHUP)


def _is_served() -> bool:
    """Whether a browser is the terminal: ``accel-tui serve`` has its dashboards say through pipes what to show."""
    return os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER and not sys.stdin.isatty()


def _is_on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Give the terminal back as it was found, even from under a program that crashed."""
    modes = termios.tcgetattr(sys.stdin)
    try:
        yield
    except BaseException:
        sys.stdout.write(RESET)
        sys.stdout.flush()
        raise
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)
