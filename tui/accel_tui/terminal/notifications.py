"""What is told to who looks elsewhere: a bell, a notification of the desktop, the terminal's title."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from accel_engine.events import Outcome
from accel_engine.text import printable_line
from accel_tui.appearance.glyphs import to_ascii
from accel_tui.formatting import figures
from accel_tui.formatting.names import base_name
from accel_tui.settings.user_settings import Settings

if TYPE_CHECKING:
    from accel_tui.run.state import RunState  # with NumPy, which the first paint does without

TITLE_SECONDS = 1.0
"""Seconds between two titles, but for the last."""

_PUSH, _POP = "\x1b[22;0t", "\x1b[23;0t"  # xterm's; terminals without a stack of titles ignore them

_OSC_9 = ("iTerm.app", "iTerm2", "WezTerm", "ghostty", "WarpTerminal")
_OSC_9_TERMS = ("xterm-kitty", "xterm-ghostty")
_OSC_9_MARKS = ("KITTY_WINDOW_ID", "ITERM_SESSION_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")
_OSC_777_TERMS = ("foot", "rxvt")
_OSC_777_MARKS = ("VTE_VERSION", "KONSOLE_VERSION")

MARKS = (*_OSC_9_MARKS, *_OSC_777_MARKS)
"""Variables by which terminals make themselves known, whatever their value."""


class Notifier:
    """Says what happens by way of the terminal.

    Args:
        write: Sends text to the terminal, between two frames.
        settings: What may be said.
        environ: The environment, which tells what the terminal understands.
        clock: Seconds, from any beginning.
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
        self._told = 0.0

    def show(self, state: "RunState") -> None:
        """Put how far a run is in the title; seldom, since every title may be a redraw of a window's frame."""
        now = self._clock()
        fresh = self._title is None or not state.live or now - self._told >= TITLE_SECONDS
        if fresh and state.info and self._settings.title and has_title(self._environ):
            words = title_of(state)
            if words != self._title:
                self._write(f"{_PUSH if self._title is None else ''}\x1b]2;{self._spelt(words)}\x07")
                self._title, self._told = words, now

    def _spelt(self, words: str) -> str:
        return to_ascii(plain(words)) if self._settings.glyphs == "ascii" else plain(words)

    def ended(self, title: str, words: str) -> None:
        """Call for attention: a run has ended."""
        if self._settings.notify_bell:
            self._write("\x07")
        way = self._settings.notify_sequence
        if self._settings.notify_desktop and (sent := notification(title, words, self._environ, way)):
            self._write(sent)

    def restore(self) -> None:
        """Give the terminal its own title back."""
        if self._title is not None:
            self._write(_POP)
            self._title = None


def title_of(state: "RunState") -> str:
    """How far a run is, in a few words, as in ``accel-tui: mlp 43 % · loss 0.12``."""
    called = state.info.name or base_name(str(state.info.values.get("model"))) if state.info else ""
    said = f"accel-tui: {called}"
    if not state.live:
        ended = state.ended
        said += f" {ended.outcome}" if ended else " lost"
    elif state.total_steps:
        said += f" {int(100 * state.step / state.total_steps)} %"
    loss = state.metrics.get("loss")
    return f"{said} · loss {figures.metric(loss)}" if loss is not None else said


def has_title(environ: Mapping[str, str]) -> bool:
    """Whether the terminal takes a title; tmux takes it for its pane, and screen would show it as text."""
    term = environ.get("TERM", "")
    return ("STY" not in environ and not term.startswith(("linux", "dumb", "vt", "screen"))) or "TMUX" in environ


def notification(title: str, words: str, environ: Mapping[str, str], way: str = "auto") -> str:
    """What has the terminal notify its user; nothing for one that is not known to.

    Args:
        title: What happened.
        words: More of it.
        environ: The environment.
        way: ``osc9`` or ``osc777``; ``auto`` for what the environment says that the terminal understands.
    """
    match _understood(environ) if way == "auto" else way:
        case "osc9":
            return _passed_on(f"\x1b]9;{plain(f'{title}: {words}' if words else title)}\x07", environ)
        case "osc777":
            said = ";".join(plain(part).replace(";", ",") for part in (title, words))
            return _passed_on(f"\x1b]777;notify;{said}\x07", environ)
    return ""


def _understood(environ: Mapping[str, str]) -> str:
    """The sequence that the terminal takes, or the one around tmux or screen, which leave its variables as they are."""
    term = environ.get("TERM", "")
    if {environ.get("TERM_PROGRAM"), environ.get("LC_TERMINAL")} & {*_OSC_9} or term in _OSC_9_TERMS:
        return "osc9"
    if any(mark in environ for mark in _OSC_9_MARKS):
        return "osc9"
    if term.startswith(_OSC_777_TERMS) or any(mark in environ for mark in _OSC_777_MARKS):
        return "osc777"
    return ""


def _passed_on(sequence: str, environ: Mapping[str, str]) -> str:
    """A sequence as tmux and screen hand it to the terminal; tmux drops it unless its allow-passthrough is on."""
    if "TMUX" in environ or environ.get("TERM", "").startswith("tmux"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if "STY" in environ:
        return f"\x1bP{sequence}\x1b\\"
    return sequence


def worth_a_call(state: "RunState") -> bool:
    """Whether an end is news to who is elsewhere; who stopped a run knows."""
    return state.ended is None or state.ended.outcome is not Outcome.STOPPED


def plain(words: str) -> str:
    """Words without what would end or change a control sequence."""
    return printable_line(words)[:200]
