"""Commands to a run's engine: rows of the table ``command``, which the engine answers."""

import getpass
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.connection import reading, writing
from accel_engine.run.status import read_info

COMMANDS = {
    "stop": "Stop after this chunk without validating; save a checkpoint and the model",
    "stop_now": "Stop after this chunk without a checkpoint",
    "pause": "Pause between two chunks, keeping all state",
    "resume": "Resume after a pause",
    "checkpoint": "Save a checkpoint now",
    "learning_rate": "Set the learning rate of the next step",
    "validate": "Validate now",
}
"""Commands by name, with what the engine does."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command to a run's engine.

    Attributes:
        id: Its row in the run.
        time: When it was sent, in seconds since the Unix epoch.
        who: Who sent it, as ``user@host``.
        name: One of :data:`COMMANDS`.
        argument: The learning rate, for ``learning_rate``; for ``stop``, the only part of a script to stop.
    """

    id: int
    time: float
    who: str
    name: str
    argument: float | None = None

    @property
    def origin(self) -> str:
        """The command and its sender, such as ``stop requested by ann@box``."""
        name = "stop without checkpoint" if self.name == "stop_now" else self.name.replace("_", " ")
        return f"{name} requested by {self.who}"


def request(directory: Path, name: str, argument: float | None = None) -> int:
    """Send a command to a run's engine.

    Args:
        directory: The run's directory.
        name: One of :data:`COMMANDS`.
        argument: The learning rate, for ``learning_rate``; for ``stop``, the only part of a script to stop.

    Returns:
        The command's id, for :func:`read_answer`.

    Raises:
        RunError: The run's engine has exited.
        ValueError: No command has that name.
    """
    if name not in COMMANDS:
        raise ValueError(f"unknown command {name!r}; known: {', '.join(COMMANDS)}")
    with writing(directory) as database:
        status = read_info(database).status
        if not status.live:
            raise RunError(f"run {directory.name} is {status}: only a live run takes commands")
        return database.add_command(time.time(), current_user(), name, argument)


def read_answer(directory: Path, number: int) -> tuple[bool, str] | None:
    """Read the engine's answer to a command: whether it obeyed, and a message; ``None`` while there is no answer.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        return database.answer_to(number)


def current_user() -> str:
    """The user of this process, as ``user@host``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
