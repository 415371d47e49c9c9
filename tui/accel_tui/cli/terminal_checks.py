"""Whether this terminal can show the dashboard, and how well."""

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from accel_engine.doctor import Check, Finding, passed, warned
from accel_tui.appearance.colours import count
from accel_tui.appearance.glyphs import has_unicode

COMFORTABLE = (80, 24)
"""Columns and rows from which on every screen has room for its panels."""

COLOURS = {16: "16 colours", 256: "256 colours", 1 << 24: "all colours"}
"""How many colours a terminal shows, in words."""

TEXTUAL_PATIENCE = 30.0
"""Seconds that Textual's import may take, from a slow disk."""

WITHOUT = "train without it: accel-tui train; follow a run: accel-tui watch RUN --plain"
"""What can be done without a dashboard."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal, as far as the checks look at it.

    Attributes:
        environment: The variables of the environment.
        interactive: Whether it is one at all.
        size: Its columns and rows.
        encoding: In which characters are written to it.
    """

    environment: Mapping[str, str]
    interactive: bool
    size: tuple[int, int]
    encoding: str

    @classmethod
    def here(cls) -> "Terminal":
        """The one that this program was started on."""
        encoding = getattr(sys.__stderr__, "encoding", None)  # what the dashboard writes to
        for descriptor in range(3):  # one of them may be a file, as when a report is kept
            with contextlib.suppress(OSError):
                columns, rows = os.get_terminal_size(descriptor)
                size = (columns, rows) if columns and rows else COMFORTABLE  # some do not know how large they are
                return cls(os.environ, True, size, encoding or "ascii")
        return cls(os.environ, False, COMFORTABLE, encoding or "ascii")

    @property
    def kind(self) -> str:
        """The name of its kind; empty where the environment has none."""
        return self.environment.get("TERM", "")

    @property
    def colours(self) -> int:
        """How many colours it shows, as it says itself and as the dashboard takes it."""
        return count(self.environment)

    @property
    def has_unicode(self) -> bool:
        """Whether every character can be written to it."""
        return has_unicode(self.environment, self.encoding)

    @property
    def locale(self) -> str:
        """The locale, where one is set, and the encoding."""
        named = (self.environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
        return ", ".join(filter(None, [next(filter(None, named), ""), self.encoding]))

    @property
    def way(self) -> str:
        """What lies between it and this program: ``tmux over SSH``; empty when nothing does."""
        inside = "tmux" if "TMUX" in self.environment else "screen" if "STY" in self.environment else ""
        remote = "over SSH" if {"SSH_CONNECTION", "SSH_TTY"} & set(self.environment) else ""
        return f"{inside} {remote}".strip()

    def __str__(self) -> str:
        """What of it matters for a bug report, in a line."""
        if not self.interactive:
            return "none"
        parts = [self.kind or "TERM not set", f"{self.size[0]}x{self.size[1]}", COLOURS[self.colours]]
        return ", ".join(filter(None, [*parts, self.encoding, self.way, self.environment.get("TERM_PROGRAM", "")]))


def checks(terminal: Terminal | None = None) -> tuple[Check, ...]:
    """Give the checks of a terminal, in order; none is made yet.

    Args:
        terminal: What is looked at; this one when left out.
    """
    terminal = terminal or Terminal.here()
    return (
        Check("terminal.type", partial(kind, terminal)),
        Check("terminal.size", partial(size, terminal), TEXTUAL_PATIENCE),
        Check("terminal.colours", partial(colours, terminal)),
        Check("terminal.unicode", partial(unicode, terminal)),
    )


def kind(terminal: Terminal) -> Finding:
    """Whether it is one that a program can draw on."""
    if not terminal.interactive:
        return warned("none", "input and output are files or pipes, and the dashboard needs a terminal", WITHOUT)
    if terminal.kind in ("", "dumb", "unknown"):
        why = "it says that nothing can be drawn on it"
        return warned(f"TERM={terminal.kind}", why, f"set TERM=xterm-256color if it is wrong; else {WITHOUT}")
    if "TMUX" in terminal.environment and not terminal.kind.startswith(("tmux", "screen")):
        why = "inside tmux this must name tmux, or colours and keys go wrong"
        return warned(f"TERM={terminal.kind} in tmux", why, "do not set TERM in your shell's start-up files")
    return passed(", ".join(filter(None, [terminal.kind, terminal.way])))


def size(terminal: Terminal) -> Finding:
    """Whether the dashboard has room."""
    from accel_tui.screens.too_small_screen import SMALLEST  # with Textual, which is slow to import

    if not terminal.interactive:
        return passed("not looked at: no terminal")
    columns, rows = terminal.size
    found = f"{columns}x{rows}"
    if columns < SMALLEST.width or rows < SMALLEST.height:
        why = f"the dashboard needs at least {SMALLEST.width}x{SMALLEST.height}"
        return warned(found, why, "make the window larger or the letters smaller")
    if columns < COMFORTABLE[0] or rows < COMFORTABLE[1]:
        why = f"from {COMFORTABLE[0]}x{COMFORTABLE[1]} on there is room for every panel"
        return warned(found, why, "make the window larger or the letters smaller")
    return passed(found)


def colours(terminal: Terminal) -> Finding:
    """Whether the dashboard's colours can be told apart."""
    if not terminal.interactive:
        return passed("not looked at: no terminal")
    if terminal.environment.get("NO_COLOR"):
        return passed("none, as NO_COLOR asks")
    if terminal.colours == 1 << 24:
        return passed(COLOURS[terminal.colours])
    if terminal.colours == 256:
        return passed("256 colours (COLORTERM=truecolor would give all)")
    why = "the dashboard takes TERM and COLORTERM at their word, and paints with 16 colours"
    return warned(
        COLOURS[terminal.colours], why, "set COLORTERM=truecolor, or a TERM that ends in -256color, if the terminal can"
    )


def unicode(terminal: Terminal) -> Finding:
    """Whether curves, which are drawn with braille characters, can be written."""
    if not terminal.has_unicode:
        why = "curves and frames are drawn with ASCII, since this locale or encoding has not more"
        return warned(terminal.locale, why, "choose a UTF-8 locale: export LC_ALL=C.UTF-8")
    if terminal.interactive and terminal.kind == "linux":
        why = "its font has no braille characters, so that curves are drawn with ASCII"
        return warned("Linux console", why, "use a terminal window, or connect with SSH")
    return passed(terminal.encoding)
