"""The first frame of the dashboard, kept for the next time it is opened.

Most of the time until a first frame goes to imports, and the frame is the same every time: the form as it
begins, before a device was found. So it is kept as it was sent to the terminal, and shown at once where
nothing it depends on has changed; the program paints over it as soon as it can. What is typed meanwhile
waits, unseen, for whoever reads the keys then.
"""

import contextlib
import json
import os
import sys
import termios
import tty

from accel_engine import __version__
from accel_tui.settings.paths import SETTINGS, first_frame_path, settings_path

ALTERNATE = "\x1b[?1049h"
"""Begins the screen that a full-screen program has to itself."""

VARIABLES = ("TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "TMUX", SETTINGS)
"""What may tell a program that it should paint differently."""


class SavedFrame:
    """The frame for this terminal, this version of the program, and the settings as they are."""

    def __init__(self) -> None:
        size = tuple(os.get_terminal_size(sys.stdout.fileno()))
        seen = [os.environ.get(name) for name in VARIABLES]
        self._about = json.dumps([__version__, size, seen, _settled()])
        self._path = first_frame_path()
        self._shown: str | None = None

    @property
    def is_shown(self) -> bool:
        """Whether it was shown."""
        return self._shown is not None

    def show(self) -> None:
        """Show it, if one for here and now was kept."""
        try:
            about, _, frame = self._path.read_text(encoding="utf-8").partition("\n")
        except (OSError, UnicodeError):
            return
        if about == self._about:
            tty.setcbreak(sys.stdin, termios.TCSANOW)  # what is typed is not to be seen in the middle of it
            sys.stdout.write(f"{ALTERNATE}\x1b[?25l\x1b[2J{frame}")
            sys.stdout.flush()
            self._shown = frame

    def keep(self, frame: str) -> None:
        """Keep what was sent to the terminal, unless it is what is kept."""
        if frame == self._shown:
            return
        with contextlib.suppress(OSError):  # then it is not there sooner next time
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            rest = self._path.with_suffix(f".{os.getpid()}")
            rest.write_text(f"{self._about}\n{frame}", encoding="utf-8")
            rest.replace(self._path)


def _settled() -> tuple[int, int] | None:
    """What changes with the settings, as far as that can be told without reading them."""
    try:
        found = settings_path().stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
