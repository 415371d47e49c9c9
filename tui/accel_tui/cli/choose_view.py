"""Chooses how a command shows a run: JSON lines, log lines or a progress bar."""

import os
import shutil
from typing import TextIO

from accel_tui.cli.follow_run import ProgressView


def view_for(stream: TextIO, *, as_json: bool, plain: bool) -> ProgressView:
    """Return the requested view; by default a bar on a terminal and a log elsewhere."""
    # These import NumPy, which --help and shell completion do not need.
    from accel_tui.cli.json_lines import JsonLines
    from accel_tui.cli.progress import Bar, Log

    if as_json:
        return JsonLines(stream)
    if plain or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Log(stream)
    return Bar(stream, lambda: shutil.get_terminal_size().columns)
