"""What a trainer is asked to do, handed from the engine's main thread to its training thread."""

import queue
import signal
from contextlib import suppress
from typing import Protocol

from accel_engine.run.commands import Command, current_user


class StopRequested(Exception):  # noqa: N818 (a request, not an error)
    """Raised in the training thread, between two chunks, when the run is to stop.

    Attributes:
        command: Who asked, and whether at once.
    """

    def __init__(self, command: Command) -> None:
        super().__init__(command.origin)
        self.command = command

    @property
    def now(self) -> bool:
        """Whether to leave without a checkpoint."""
        return self.command.name == "stop_now"


class CommandSource(Protocol):
    """Where a trainer finds what it is asked to do."""

    def take(self) -> Command | None:
        """Take the next command, if there is one."""

    def wait(self) -> Command:
        """Wait for a command and take it."""


class CommandMailbox:
    """Commands on their way to the training thread, which takes them between two chunks.

    Ctrl-C may end a script's training anywhere: there is no lock here that would stay taken, as a condition's may.
    """

    def __init__(self) -> None:
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._next: Command | None = None

    def post(self, command: Command) -> None:
        """Add a command; wakes the training thread if it waits."""
        self._commands.put(command)

    def take(self) -> Command | None:
        """Take the oldest command, if there is one."""
        self.linger(0.0)
        command, self._next = self._next, None
        return command

    @property
    def waits(self) -> bool:
        """Whether there is a command that nobody has taken."""
        return self._next is not None or not self._commands.empty()

    def linger(self, seconds: float) -> None:
        """Wait for a command for so long, without taking it."""
        if self._next is None:
            with suppress(queue.Empty):
                self._next = self._commands.get(timeout=seconds)

    def wait(self) -> Command:
        """Wait for a command and take it; how a paused run spends its time."""
        return self.take() or self._commands.get()


def from_signal(number: int, time: float, *, again: bool) -> Command:
    """The command that a signal stands for: the first stops gracefully, the next at once."""
    name = "stop_now" if again else "stop"
    return Command(0, time, f"{signal.Signals(number).name} to {current_user()}", name)
