"""Notifications outside the app: terminal bell, desktop notification, terminal title."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.appearance.glyphs import to_ascii
from accel_tui.formatting.text import base_name
from accel_tui.settings.user_settings import Settings

if TYPE_CHECKING:
    from accel_tui.run_state.state import RunState  # imports NumPy, which the first paint does without

TITLE_SECONDS = 1.0
"""Minimum seconds between two updates of the title."""

_PUSH, _POP = "\x1b[22;0t", "\x1b[23;0t"  # xterm's; terminals without a title stack ignore them

_OSC_9 = ("iTerm.app", "iTerm2", "WezTerm", "ghostty", "WarpTerminal")
_OSC_9_TERMS = ("xterm-kitty", "xterm-ghostty")
_OSC_9_MARKS = ("KITTY_WINDOW_ID", "ITERM_SESSION_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")
_OSC_777_TERMS = ("foot", "rxvt")
_OSC_777_MARKS = ("VTE_VERSION", "KONSOLE_VERSION")

MARKS = (*_OSC_9_MARKS, *_OSC_777_MARKS)
"""Environment variables that identify terminals, whatever their value."""


class Notifier:
    """Notifies through the terminal.

    Args:
        write: Writes to the terminal, between two frames.
        settings: User settings of notifications.
        environ: The environment, which identifies the terminal.
        clock: Monotonic time in seconds.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        settings: Settings,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._settings = settings
        self._environ = environ
        self._clock = clock
        self._title: str | None = None
        self._title_time = 0.0

    def show(self, state: "RunState") -> None:
        """Show a run's progress in the title, at most once a second: each title may redraw the window's frame."""
        now = self._clock()
        is_due = self._title is None or not state.live or now - self._title_time >= TITLE_SECONDS
        if is_due and state.info and self._settings.title and has_title(self._environ):
            words = _title_of(state)
            if words != self._title:
                self._write(f"{_PUSH if self._title is None else ''}\x1b]2;{self._transliterated(words)}\x07")
                self._title, self._title_time = words, now

    def _transliterated(self, words: str) -> str:
        return to_ascii(notification_line(words)) if self._settings.glyphs == "ascii" else notification_line(words)

    def ended(self, title: str, words: str) -> None:
        """Notify that a run has ended."""
        if self._settings.notify_bell:
            self._write("\x07")
        method = self._settings.notify_sequence
        if self._settings.notify_desktop and (sequence := notification(title, words, self._environ, method)):
            self._write(sequence)

    def restore(self) -> None:
        """Restore the terminal's own title."""
        if self._title is not None:
            self._write(_POP)
            self._title = None


def _title_of(state: "RunState") -> str:
    """A run's progress for the title, e.g. ``accel-tui: mlp 43 % · loss 0.12``."""
    name = state.info.name or base_name(str(state.info.plan_values.get("model"))) if state.info else ""
    title = f"accel-tui: {name}"
    if not state.live:
        ended = state.ended
        title += f" {ended.outcome}" if ended else " lost"
    elif state.progress is not None:
        title += f" {int(100 * state.progress)} %"
    loss = state.metrics.get("loss")
    return f"{title} · loss {numbers.metric(loss)}" if loss is not None else title


def has_title(environ: Mapping[str, str]) -> bool:
    """Whether the terminal supports titles; tmux uses it for the pane, and screen would print it as text."""
    term = environ.get("TERM", "")
    return ("STY" not in environ and not term.startswith(("linux", "dumb", "vt", "screen"))) or "TMUX" in environ


def notification(title: str, words: str, environ: Mapping[str, str], method: str = "auto") -> str:
    """The sequence of a desktop notification; empty for terminals without support.

    Args:
        title: What happened.
        words: Details.
        environ: The environment.
        method: ``osc9``, ``osc777``, or ``auto`` to detect it from the environment.
    """
    match _supported_sequence(environ) if method == "auto" else method:
        case "osc9":
            return _passthrough(f"\x1b]9;{notification_line(f'{title}: {words}' if words else title)}\x07", environ)
        case "osc777":
            payload = ";".join(notification_line(part).replace(";", ",") for part in (title, words))
            return _passthrough(f"\x1b]777;notify;{payload}\x07", environ)
    return ""


def _supported_sequence(environ: Mapping[str, str]) -> str:
    """The sequence that the terminal supports, or the terminal around tmux or screen."""
    term = environ.get("TERM", "")
    if {environ.get("TERM_PROGRAM"), environ.get("LC_TERMINAL")} & {*_OSC_9} or term in _OSC_9_TERMS:
        return "osc9"
    if any(mark in environ for mark in _OSC_9_MARKS):
        return "osc9"
    if term.startswith(_OSC_777_TERMS) or any(mark in environ for mark in _OSC_777_MARKS):
        return "osc777"
    return ""


def _passthrough(sequence: str, environ: Mapping[str, str]) -> str:
    """The sequence wrapped so that tmux or screen passes it on; tmux needs its option allow-passthrough."""
    if "TMUX" in environ or environ.get("TERM", "").startswith("tmux"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if "STY" in environ:
        return f"\x1bP{sequence}\x1b\\"
    return sequence


def is_notable_end(state: "RunState") -> bool:
    """Whether the user should be notified of an end; not of one that the user caused."""
    from accel_engine.events import Outcome  # slow to import, and not needed for the first paint

    return state.ended is None or state.ended.outcome is not Outcome.STOPPED


def notification_line(words: str) -> str:
    """Text without control characters, at most 200 characters."""
    return printable_line(words)[:200]
