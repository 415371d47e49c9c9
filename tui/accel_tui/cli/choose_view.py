"""Which view of a run fits what the user asked for and where it goes."""

import os
import shutil
from typing import TextIO

from accel_tui.cli.follow_run import ProgressView


def view_for(stream: TextIO, *, as_json: bool, plain: bool) -> ProgressView:
    """Choose a view: JSON lines or a log where they are asked for, else a bar on a terminal and a log elsewhere."""
    # What follows imports NumPy, for which neither help nor the completion of what is typed need wait.
    from accel_tui.cli.json_lines import JsonLines
    from accel_tui.cli.progress import Bar, Log

    if as_json:
        return JsonLines(stream)
    if plain or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Log(stream)
    return Bar(stream, lambda: shutil.get_terminal_size().columns)
