"""Asking something of a run's engine: a row that the engine answers."""

import getpass
import os
import socket
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.schema import connect
from accel_engine.run.status import read_info

COMMANDS = {
    "stop": "Stop after this chunk, validate no more, keep a checkpoint and the model",
    "stop_now": "Stop after this chunk at the latest, without a checkpoint",
    "pause": "Wait between two chunks, keeping all state",
    "resume": "Go on after a pause",
    "checkpoint": "Write a checkpoint now",
    "learning_rate": "Take the next step with another learning rate",
    "validate": "Try the model on the validation data now",
}
"""What can be asked of an engine, and what it then does."""


@dataclass(frozen=True, slots=True)
class Command:
    """Something that somebody asked of a run's engine.

    Attributes:
        id: Its row in the run.
        time: When it was asked, in seconds since the Unix epoch.
        who: Who asked, as ``user@host``.
        name: One of :data:`COMMANDS`.
        argument: The learning rate, for ``learning_rate``.
    """

    id: int
    time: float
    who: str
    name: str
    argument: float | None = None

    @property
    def origin(self) -> str:
        """What was asked, and by whom, in words."""
        return f"{self.name.replace('_', ' ')} asked by {self.who}"


def request(directory: Path, name: str, argument: float | None = None) -> int:
    """Ask something of a run's engine.

    Args:
        directory: The run's.
        name: One of :data:`COMMANDS`.
        argument: The learning rate, for ``learning_rate``.

    Returns:
        The command's number, for :func:`answer`.

    Raises:
        RunError: The run has no engine any more.
        ValueError: No command has that name.
    """
    if name not in COMMANDS:
        raise ValueError(f"{name!r} is no command; known: {', '.join(COMMANDS)}")
    connection = connect(directory)
    try:
        status = read_info(connection, directory).status
        if not status.live:
            raise RunError(f"run {directory.name} is {status}: there is no engine to ask")
        cursor = connection.execute(
            "INSERT INTO command (time, who, name, argument) VALUES (?, ?, ?, ?)",
            (time.time(), who(), name, argument),
        )
        return int(cursor.lastrowid or 0)
    except sqlite3.Error as error:
        raise RunError(f"cannot write to run {directory.name}: {error}") from error
    finally:
        connection.close()


def answer(directory: Path, number: int) -> tuple[bool, str] | None:
    """Read an engine's answer to a command: whether it was obeyed, and in words; ``None`` before it is there.

    Raises:
        RunError: The run cannot be read.
    """
    connection = connect(directory, read_only=True)
    try:
        row = connection.execute("SELECT answered, obeyed, answer FROM command WHERE id = ?", (number,)).fetchone()
    except sqlite3.Error as error:
        raise RunError(f"run {directory.name} cannot be read: {error}") from error
    finally:
        connection.close()
    return (bool(row[1]), str(row[2])) if row and row[0] is not None else None


def who() -> str:
    """The user at this terminal, as ``user@host``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
