"""Commands to a run's engine: rows of the table ``command``, which the engine answers."""

import os
import signal
from pathlib import Path

from accel_engine.errors import DatabaseError, RunError, file_errors
from accel_engine.events import CommandAnswered
from accel_engine.json_values import decode_or_none
from accel_engine.run.directory.disk_problem import DiskProblem, disk_problem
from accel_engine.run.directory.run_paths import host_function, host_of_run
from accel_engine.run.engine.process_identity import ProcessIdentity
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import reading, writing
from accel_engine.run.store.meta import read_meta
from accel_engine.versioned_database import CommandRow

COMMANDS = {
    "stop": "Stop after this chunk without validating; save a checkpoint and the model",
    "stop_now": "Stop after this chunk without a checkpoint",
    "pause": "Pause between two chunks, keeping all state",
    "resume": "Resume after a pause",
    "checkpoint": "Save a checkpoint now",
    "learning_rate": "Set the learning rate of the next step",
    "validate": "Validate now",
    "validation_every": "Validate every N steps",
    "checkpoint_every": "Save a checkpoint every N steps",
    "profile": "Trace the operations for N seconds",
}
"""Commands by name, with what the engine does."""

_STOPS = ("stop", "stop_now")
"""Commands that end the run; an engine obeys them while it waits for the disk, too."""


class Command(CommandRow, frozen=True):
    """A command to a run's engine; its name is one of :data:`COMMANDS`.

    Its purpose is :data:`~accel_engine.events.CURE`, :data:`~accel_engine.events.UNDO` or empty.
    """

    argument: float | None = None
    """The learning rate, for ``learning_rate``; the steps, for ``validation_every`` and ``checkpoint_every``; the most
    seconds, for ``pause``; the seconds, for ``profile``; the id of the only pause to end, for ``resume``; for ``stop``,
    the only part of a script to stop."""

    @property
    def stops(self) -> bool:
        """Whether it ends the run."""
        return self.name in _STOPS

    @property
    def origin(self) -> str:
        """The command and its sender, such as ``stop requested by ann@box``."""
        name = "stop without checkpoint" if self.name == "stop_now" else self.name.replace("_", " ")
        return f"{name} requested by {self.who}{f' ({self.reason})' if self.reason else ''}"


def answered(command: Command, time: float, step: int, answer: str, *, obeyed: bool) -> CommandAnswered:
    """The event of an answer.

    Args:
        command: The command.
        time: When, in seconds since the Unix epoch.
        step: Steps taken.
        answer: What was done, or why not.
        obeyed: Whether it was carried out.
    """
    return CommandAnswered(
        time=time,
        command=command.name,
        who=command.who,
        reason=command.reason,
        purpose=command.purpose,
        obeyed=obeyed,
        answer=answer,
        step=step,
    )


def send_command(
    directory: Path, name: str, argument: float | None = None, *, reason: str = "", purpose: str = ""
) -> int:
    """Send a command to a run's engine.

    Args:
        directory: The run's directory.
        name: One of :data:`COMMANDS`.
        argument: As in :class:`Command`.
        reason: Why, which is recorded with the sender.
        purpose: As in :class:`Command`.

    Returns:
        The command's id, for :func:`read_answer`; 0 if nothing can be written to the disk, so that a signal stops the
        engine instead, which has no answer.

    Raises:
        RunError: The run's engine has exited, the command has to wait for the disk as the engine does, or it cannot be
            written.
        ValueError: No command has that name.
    """
    if name not in COMMANDS:
        raise ValueError(f"unknown command {name!r}; known: {', '.join(COMMANDS)}")
    if host_of_run(directory):
        host_function("mirrored_runs:forward")(directory)
    try:
        with writing(directory) as database:
            info = read_info(database)
            if not info.status.live:
                raise RunError(f"run {directory.name} is {info.status}: only a live run takes commands")
            if info.waiting and name not in _STOPS:  # it would be obeyed whenever there is space again
                raise RunError(f"{info.waiting.waiting}: {_has_to_wait(name)}; it was not sent")
            return database.add_command(name, argument, reason, purpose)
    except DatabaseError as error:
        problem = disk_problem(error, directory)
        if problem is None:
            raise
        _stop_by_signal(directory, name, problem)
        return 0


def _stop_by_signal(directory: Path, name: str, problem: DiskProblem) -> None:
    """Stop an engine on this machine whose disk takes no command; the second signal makes it stop now."""
    why = f"{problem}: the command cannot be written"
    with reading(directory) as database:
        info, process = read_info(database), decode_or_none(read_meta(database).get("process"), ProcessIdentity)
    if not info.status.live:
        raise RunError(f"run {directory.name} is {info.status}: only a live run takes commands")
    if name not in _STOPS:
        raise RunError(f"{why}, and {_has_to_wait(name)}")
    if not info.has_engine:
        raise RunError(f"{why}; interrupt the script itself, or make room")
    if not process or not process.alive:
        raise RunError(f"{why}; send SIGINT to process {info.pid} on {info.host} to stop it, or make room")
    with file_errors(f"{why}, and process {process.pid} gets no signal"):
        for number in (signal.SIGINT, *((signal.SIGTERM,) if name == "stop_now" else ())):
            os.kill(process.pid, number)


def _has_to_wait(name: str) -> str:
    return f"{name.replace('_', ' ')} has to wait; only stop works until then"


def withdraw(directory: Path, number: int) -> bool:
    """Withdraw a command, so that the engine does not obey it later; returns whether it had no answer.

    Raises:
        RunError: The run cannot be written.
    """
    with writing(directory) as database:
        return database.withdraw(number)


def read_answer(directory: Path, number: int) -> tuple[bool, str] | None:
    """Read the engine's answer to a command: whether it obeyed, and a message; ``None`` while there is no answer.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        return database.answer_to(number)
