"""Saves the first frame of the dashboard, and shows it at the next start before anything is imported.

Importing takes most of the time to the first frame, which is the same at every start. It is saved as sent to the
terminal, and shown only if version, size, environment and settings are the same. Until the
app runs, input is not echoed; the app reads it later.
"""

import contextlib
import json
import os
import sys
import termios
import tty

from accel_engine.files import replacing
from accel_engine.version import __version__
from accel_tui.settings.settings_paths import SETTINGS, first_frame_path, settings_path

ENTER_ALTERNATE_SCREEN = "\x1b[?1049h"
"""Switches to the alternate screen."""

ENVIRONMENT = ("TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "TMUX", SETTINGS)
"""Environment variables that affect painting."""


class SavedFrame:
    """The saved frame for this terminal, program version and settings."""

    def __init__(self) -> None:
        size = tuple(os.get_terminal_size(sys.stdout.fileno()))
        seen = [os.environ.get(name) for name in ENVIRONMENT]
        self._fingerprint = json.dumps([__version__, size, seen, _settings_stamp()])
        self._path = first_frame_path()
        self._shown: str | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the frame was shown."""
        return self._shown is not None

    def show(self) -> None:
        """Show the frame if it was saved under the same conditions."""
        try:
            about, _, frame = self._path.read_text(encoding="utf-8").partition("\n")
        except (OSError, UnicodeError):
            return
        if about == self._fingerprint:
            tty.setcbreak(sys.stdin, termios.TCSANOW)  # no echo of input over the frame
            sys.stdout.write(f"{ENTER_ALTERNATE_SCREEN}\x1b[?25l\x1b[2J{frame}")
            sys.stdout.flush()
            self._shown = frame

    def keep(self, frame: str) -> None:
        """Save a frame, unless it is the saved one."""
        if frame == self._shown:
            return
        with contextlib.suppress(OSError):  # best effort
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self._path) as temporary:
                temporary.write_text(f"{self._fingerprint}\n{frame}", encoding="utf-8")


def _settings_stamp() -> tuple[int, int] | None:
    """Modification time and size of the settings file; ``None`` if there is none."""
    try:
        found = settings_path().stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
