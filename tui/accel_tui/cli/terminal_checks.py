"""Doctor checks of the terminal: type, size, colours and Unicode."""

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from accel_engine.doctor import Check, CheckFinding, passed, skipped, warned
from accel_tui.appearance.colours import terminal_colour_count
from accel_tui.appearance.glyphs import has_unicode

COMFORTABLE = (80, 24)
"""The columns and rows at which every screen shows all panels."""

COLOURS = {16: "16 colours", 256: "256 colours", 1 << 24: "true colour"}
"""Names of the numbers of colours."""

TEXTUAL_TIMEOUT = 30.0
"""Time limit in seconds for the import of Textual from a slow disk."""

WITHOUT_DASHBOARD = "train without it: accel-tui train; follow a run: accel-tui watch RUN --plain"
"""The advice for a terminal that cannot show the dashboard."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The properties of a terminal that the checks use."""

    environment: Mapping[str, str]
    """The environment variables."""
    interactive: bool
    """Whether there is a terminal."""
    size: tuple[int, int]
    """Its columns and rows."""
    encoding: str
    """The encoding of the output."""

    @classmethod
    def here(cls) -> "Terminal":
        """Return the terminal of this process."""
        encoding = getattr(sys.__stderr__, "encoding", None)  # the dashboard writes to it
        for descriptor in range(3):  # some may be redirected to a file
            with contextlib.suppress(OSError):
                columns, rows = os.get_terminal_size(descriptor)
                size = (columns, rows) if columns and rows else COMFORTABLE  # some terminals report 0x0
                return cls(os.environ, True, size, encoding or "ascii")
        return cls(os.environ, False, COMFORTABLE, encoding or "ascii")

    @property
    def kind(self) -> str:
        """The value of TERM; empty if unset."""
        return self.environment.get("TERM", "")

    @property
    def colours(self) -> int:
        """The number of colours that the dashboard uses on it."""
        return terminal_colour_count(self.environment)

    @property
    def has_unicode(self) -> bool:
        """Whether it shows Unicode characters."""
        return has_unicode(self.environment, self.encoding)

    @property
    def locale(self) -> str:
        """The locale, if one is set, and the encoding."""
        named = (self.environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
        return ", ".join(filter(None, [next(filter(None, named), ""), self.encoding]))

    @property
    def connection(self) -> str:
        """How the program is connected to it, e.g. ``tmux over SSH``; empty for a direct connection."""
        inside = "tmux" if "TMUX" in self.environment else "screen" if "STY" in self.environment else ""
        remote = "over SSH" if {"SSH_CONNECTION", "SSH_TTY"} & set(self.environment) else ""
        return f"{inside} {remote}".strip()

    def __str__(self) -> str:
        """Describe the terminal in a line, for a bug report."""
        if not self.interactive:
            return "none"
        parts = [self.kind or "TERM not set", f"{self.size[0]}x{self.size[1]}", COLOURS[self.colours]]
        parts += [self.encoding, self.connection, self.environment.get("TERM_PROGRAM", "")]
        return ", ".join(filter(None, parts))


def checks(terminal: Terminal | None = None) -> tuple[Check, ...]:
    """Return the checks of a terminal, without running them.

    Args:
        terminal: The terminal; this process's by default.
    """
    terminal = terminal or Terminal.here()
    return (
        Check("terminal.type", partial(_check_type, terminal)),
        Check("terminal.size", partial(_check_size, terminal), TEXTUAL_TIMEOUT),
        Check("terminal.colours", partial(_check_colours, terminal)),
        Check("terminal.unicode", partial(_check_unicode, terminal)),
    )


def _check_type(terminal: Terminal) -> CheckFinding:
    """Check that the terminal supports full-screen programs."""
    if not terminal.interactive:
        return warned("none", "input and output are files or pipes; the dashboard needs a terminal", WITHOUT_DASHBOARD)
    if terminal.kind in ("", "dumb", "unknown"):
        why = "this type does not support full-screen programs"
        return warned(f"TERM={terminal.kind}", why, f"set TERM=xterm-256color if that is wrong, or {WITHOUT_DASHBOARD}")
    if "TMUX" in terminal.environment and not terminal.kind.startswith(("tmux", "screen")):
        why = "inside tmux, TERM must be tmux or screen; otherwise colours and keys are wrong"
        return warned(f"TERM={terminal.kind} in tmux", why, "do not set TERM in the start-up files of your shell")
    return passed(", ".join(filter(None, [terminal.kind, terminal.connection])))


def _check_size(terminal: Terminal) -> CheckFinding:
    """Check that the dashboard fits."""
    from accel_tui.screens.too_small_screen import MIN_SIZE  # imports Textual, which is slow

    if not terminal.interactive:
        return skipped("not checked: no terminal")
    columns, rows = terminal.size
    found = f"{columns}x{rows}"
    if columns < MIN_SIZE.width or rows < MIN_SIZE.height:
        why = f"the dashboard requires at least {MIN_SIZE.width}x{MIN_SIZE.height}"
        return warned(found, why, "enlarge the window or reduce the font size")
    if columns < COMFORTABLE[0] or rows < COMFORTABLE[1]:
        why = f"all panels are visible at {COMFORTABLE[0]}x{COMFORTABLE[1]} or larger"
        return warned(found, why, "enlarge the window or reduce the font size")
    return passed(found)


def _check_colours(terminal: Terminal) -> CheckFinding:
    """Check that the terminal shows enough colours."""
    if not terminal.interactive:
        return skipped("not checked: no terminal")
    if terminal.environment.get("NO_COLOR"):
        return passed("none (NO_COLOR is set)")
    if terminal.colours == 1 << 24:
        return passed(COLOURS[terminal.colours])
    if terminal.colours == 256:
        return passed("256 colours (set COLORTERM=truecolor for true colour)")
    why = "TERM and COLORTERM announce only 16 colours"
    fix = "if the terminal supports more, set COLORTERM=truecolor or a TERM that ends in -256color"
    return warned(COLOURS[terminal.colours], why, fix)


def _check_unicode(terminal: Terminal) -> CheckFinding:
    """Check that braille characters, which draw the curves, can be shown."""
    if not terminal.has_unicode:
        why = "this locale or encoding has no Unicode: curves and frames are drawn with ASCII"
        return warned(terminal.locale, why, "use a UTF-8 locale: export LC_ALL=C.UTF-8")
    if terminal.interactive and terminal.kind == "linux":
        why = "its font has no braille characters: curves are drawn with ASCII"
        return warned("Linux console", why, "use a terminal window, or connect with SSH")
    return passed(terminal.encoding)
