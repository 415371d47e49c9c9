"""Passes commands from the engine's main thread to its training thread."""

import queue
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.engine.commands import Command
from accel_engine.versioned_database import current_user


class StopRequested(Exception):  # noqa: N818 (a request, not an error)
    """Raised in the training thread, between two chunks or while it waits for the disk, to stop the run.

    Args:
        command: The ``stop`` or ``stop_now`` command.
        problem: Why not everything could be written before.

    Attributes:
        now: Whether to stop without a checkpoint.
        problem: Why not everything could be written; ``None`` if it could.
    """

    def __init__(self, command: Command, problem: DiskProblem | None = None) -> None:
        super().__init__(f"{command.origin}; {problem}: not all was saved" if problem else command.origin)
        self.problem = problem
        self.now = command.name == "stop_now" or problem is not None


class CommandSource(Protocol):
    """Source of a trainer's commands.

    Attributes:
        is_shared: Whether other workers obey the same commands, so that none may leave out one that it has taken.
    """

    is_shared: bool

    def take(self) -> Command | None:
        """Remove and return the next command; ``None`` if there is none."""

    def wait(self) -> Command:
        """Block until there is a command, then remove and return it."""

    def wait_at_most(self, seconds: float) -> Command | None:
        """The same, but may return ``None`` after some seconds."""


class CommandMailbox:
    """A queue of commands for the training thread.

    Ctrl-C may interrupt a script's training anywhere, so nothing here holds a lock that could stay locked.

    Attributes:
        is_stop_posted: Whether a command to stop was added, which may be taken already.
    """

    is_shared = False

    def __init__(self) -> None:
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._next: Command | None = None
        self._last_id = 0
        self.is_stop_posted = False

    def post_new(self, commands: Iterable[Command]) -> list[Command]:
        """Add and return those commands of a run that were not added before."""
        new = [command for command in commands if command.id > self._last_id]
        for command in new:
            self._last_id = command.id
            self.post(command)
        return new

    def post(self, command: Command) -> None:
        """Add a command; wakes a waiting training thread."""
        self._commands.put(command)
        self.is_stop_posted = self.is_stop_posted or command.stops

    def take(self) -> Command | None:
        """Remove and return the oldest command; ``None`` if there is none."""
        self.wait_for_next(0.0)
        command, self._next = self._next, None
        return command

    @property
    def has_pending(self) -> bool:
        """Whether a command is waiting to be taken."""
        return self._next is not None or not self._commands.empty()

    def wait_for_next(self, seconds: float) -> None:
        """Block until there is a command, at most ``seconds``, without taking it."""
        if self._next is None:
            with suppress(queue.Empty):
                self._next = self._commands.get(timeout=seconds)

    def wait(self) -> Command:
        """Block until there is a command, then remove and return it."""
        return self.take() or self._commands.get()

    def wait_at_most(self, seconds: float) -> Command | None:
        """The same, but after some seconds ``None``."""
        self.wait_for_next(seconds)
        return self.take()


def command_from_signal(number: int, time: float, *, again: bool) -> Command:
    """The command for a signal: the first stops gracefully, ``again`` stops immediately.

    SIGUSR1, which batch systems send before they end a job, saves a checkpoint.
    """
    name = "checkpoint" if number == signal.SIGUSR1 else "stop_now" if again else "stop"
    return Command(0, time, f"{signal.Signals(number).name} to {current_user()}", name)
