"""Tells how to watch a run that a script records."""

import os
import socket
import sys
from pathlib import Path

from accel_engine.text import printable, shell_command


def print_hint(directory: Path | None) -> None:
    """Print where a run is and the commands that watch it; ``None`` before there is one."""
    sys.stdout.write(hint(directory) if directory else "there is no run yet: it begins with the training\n")
    sys.stdout.flush()


def hint(directory: Path) -> str:
    """The run's directory and host, and the commands that watch it, on this machine and from another one."""
    home = os.environ.get("ACCEL_TUI_HOME")
    setting = ["env", f"ACCEL_TUI_HOME={Path(home).absolute()}"] if home else []
    command = shell_command([*setting, "accel-tui", "watch", directory.name])
    host = socket.gethostname()
    return (
        f"run {directory.name} on {printable(host)}: {printable(str(directory))}\n"
        f"to watch it:      {command}\n"
        f"over SSH:         {shell_command(['ssh', '-t', host, command])}\n"
    )
