"""Opens the dashboard on a terminal and restores the terminal afterwards."""

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
from accel_tui.cli.output import print_to_stderr

RESET = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[0m"
"""Leaves the alternate screen, shows the cursor, and disables mouse, focus, paste and key reports."""

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""The Textual driver of programs under textual-serve."""


def has_terminal() -> bool:
    """Whether the dashboard can be opened here."""
    return _is_served() or (_is_on_terminal() and os.environ.get("TERM", "dumb") != "dumb")


def open_dashboard(run: Path | None = None) -> int:
    """Run the dashboard until the user quits.

    Args:
        run: The directory of a run to open.

    Returns:
        The exit status.

    Raises:
        UsageError: This is not a terminal, or it cannot show the dashboard.
    """
    if not has_terminal():
        found = f"TERM={os.environ.get('TERM', '')!r}" if _is_on_terminal() else "no terminal"
        raise UsageError(
            f"the dashboard requires a full-screen terminal; found {found}\n"
            "Train without it: accel-tui train. Follow a run: accel-tui watch RUN --plain."
        )
    gc.disable()  # few objects before the first paint are garbage; the app enables it again

    error_output = io.StringIO()
    with contextlib.ExitStack() as stack:
        if not _is_served():
            stack.enter_context(_restored_terminal())
            stack.enter_context(silent_libraries())
        status = _run(run, error_output)
    return _report_exit(status, error_output.getvalue())


def _run(run: Path | None, error_output: TextIO) -> int:
    import asyncio

    from accel_tui.appearance.colours import configure_textual
    from accel_tui.appearance.glyphs import resolve_glyphs
    from accel_tui.settings.user_settings import SettingsError, load_settings

    # Before the import of Textual, which reads the environment.
    settings = resolve_glyphs(
        configure_textual(load_settings(), os.environ), os.environ, getattr(sys.__stderr__, "encoding", "ascii")
    )

    from rich.console import Console
    from textual.scrollbar import ScrollBarRender

    from accel_engine.run.directory.run_paths import host_of_run
    from accel_tui.app import AccelApp
    from accel_tui.keymap import theme_errors
    from accel_tui.terminal.pixel_images import find_pixels
    from accel_tui.terminal.textual_private import DisconnectSafeDriver

    if errors := theme_errors(settings):
        raise SettingsError(errors)
    if run and host_of_run(run):  # else this is done later, before a run of a host can be opened
        from accel_engine.hosts.mirrored_runs import show_on_screen

        show_on_screen()
    if settings.glyphs == "ascii":  # ASCII has no eighths of a cell for the ends of a bar
        ScrollBarRender.VERTICAL_BARS = ScrollBarRender.HORIZONTAL_BARS = [" "] * 8
    has_pixels = settings.images == "auto" and not _is_served() and find_pixels(os.environ)
    with asyncio.Runner() as runner:
        app = AccelApp(open_run=run, settings=settings, keeps_engine=True, has_pixels=has_pixels)
        if not _is_served():
            app.driver_class = DisconnectSafeDriver
        app.error_console = Console(file=error_output, width=100, markup=False, highlight=False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            runner.get_loop().add_signal_handler(number, app.exit)
        threading.Thread(target=_await_hang_up, name="hang-up", daemon=True).start()
        runner.run(app.run_async())
    if app.settings_error is not None:
        raise app.settings_error
    return app.return_code or 0


def _report_exit(status: int, output: str) -> int:
    """Print the error output of the dashboard; after a crash, save it and print its path."""
    if status == 0 or os.environ.get("ACCEL_TUI_DEBUG"):
        sys.stderr.write(printable(output))
        return status
    from accel_engine.run.directory.run_paths import home  # slow to import

    message = "the dashboard crashed; active runs keep training"
    with contextlib.suppress(OSError, AccelError):
        report = home() / "crash.txt"
        report.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        report.touch(mode=0o600)
        report.write_text(output, encoding="utf-8")
        message += f"\nPlease report this in the project's issue tracker and attach {report}"
    print_to_stderr(message)
    return status


def _await_hang_up() -> None:
    """Raise SIGHUP when the terminal closes, also if it is not this process's controlling terminal.

    Otherwise Textual's reader would read the end of the input in a busy loop.
    """
    poll = select.poll()
    poll.register(sys.stdin, 0)  # hang-ups and errors are always reported
    if any(event & select.POLLHUP for _, event in poll.poll()):
        os.kill(os.getpid(), signal.SIGHUP)


def _is_served() -> bool:
    """Whether this process is a dashboard of ``accel-tui serve``, which communicates through pipes."""
    return os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER and not sys.stdin.isatty()


def _is_on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextlib.contextmanager
def silent_libraries() -> Iterator[None]:
    """Drop what native libraries print to standard error, as readers of damaged files do: it would be on the screen.

    Textual has another descriptor of the terminal meanwhile.
    """
    terminal, number = sys.__stderr__, 2
    former = os.dup(number)
    with open(os.dup(number), "w", encoding=getattr(terminal, "encoding", None), closefd=True) as own:
        sys.__stderr__ = own  # type: ignore[misc]
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
        try:
            yield
        finally:
            os.dup2(former, number)
            os.close(former)
            sys.__stderr__ = terminal  # type: ignore[misc]


@contextlib.contextmanager
def _restored_terminal() -> Iterator[None]:
    """Restore the terminal, also after a crash."""
    modes = termios.tcgetattr(sys.stdin)
    try:
        yield
    except BaseException:
        sys.stdout.write(RESET)
        sys.stdout.flush()
        raise
    finally:
        with contextlib.suppress(termios.error):  # the terminal is closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)
