"""Opens searches, and starts the processes that run them; Optuna is imported when it is needed."""

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.devices.installation import installed_versions
from accel_engine.errors import EngineMissingError
from accel_engine.process.detached import leave, start_detached
from accel_engine.run.directory import lock
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import LOCK, LOG
from accel_engine.text import printable_line

if TYPE_CHECKING:
    import subprocess

    from accel_engine.search.study_reader import StudyReader

TAIL_BYTES = 4096
"""Bytes of a log that are read for its last line."""

INSTALL = "pip install '.[search]' in a checkout of accel-tui"
"""How to install Optuna: the name of the package would find the extras of the version that is installed."""

_starting: dict[Path, "subprocess.Popen[str]"] = {}
"""The processes that this one has started of searches which nothing has locked yet, by the search's directory."""


def require_optuna() -> None:
    """Check that Optuna is installed.

    Raises:
        EngineMissingError: Optuna is not installed.
    """
    if not installed_versions("optuna"):
        raise EngineMissingError(f"a search needs Optuna, which is not installed: {INSTALL}")


def open_study(directory: Path) -> "StudyReader":
    """Open the study of a search to read it. Imports Optuna, which takes 0.2 s: not on an event loop.

    Raises:
        EngineMissingError: Optuna is not installed.
        RunError: There is no search, or its storage cannot be reached or read.
    """
    require_optuna()
    from accel_engine.search.study_reader import StudyReader

    return StudyReader(directory)


def is_search_running(directory: Path) -> bool:
    """Whether a process runs a search, or has been started by this one and imports what it needs for that."""
    process = _starting.get(directory)
    if not (is_locked := lock.is_locked(directory, LOCK)) and process and process.poll() is None:
        return True
    if process and _starting.pop(directory, None):
        leave(process)
    return is_locked


def reopen_search(directory: Path) -> None:
    """Before the process of a search starts, forget how it ended, and refuse commands to stop it; not if it runs."""
    if is_search_running(directory):
        return
    with StudyDatabase(directory) as database:
        database.update(ended=None)
        for command in database.commands():
            if command.name == "stop":
                database.answer(command.id, "the search was not running", obeyed=False)


def start_search_process(directory: Path) -> "subprocess.Popen[str]":
    """Start the process that runs a search; it ends at once if another one does.

    Raises:
        EngineMissingError: Optuna is not installed.
        RunError: The search's log cannot be written, or the system cannot start a process.
    """
    require_optuna()
    words = ("-m", "accel_engine.search", str(directory))
    return start_detached(f"the search {directory.name}", *words, log=directory / LOG)


def resume_study(directory: Path) -> None:
    """Start the process that runs a search, unless one does. Blocks.

    Raises:
        AccelError: See :func:`start_search_process`.
    """
    if is_search_running(directory):
        return
    require_optuna()  # before anything is written
    reopen_search(directory)
    _starting[directory] = process = start_search_process(directory)
    atexit.register(leave, process)


def last_log_line(directory: Path) -> str:
    """The last line that the process of a search has written to its log, made printable; empty if there is none."""
    try:
        with (directory / LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return printable_line(next((line.strip() for line in reversed(lines) if line.strip()), ""))
