"""What a trainer is asked to do, handed from the engine's main thread to its training thread."""

import signal
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from accel_engine.run.commands import Command, who


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


class Commands(Protocol):
    """Where a trainer finds what it is asked to do."""

    def take(self) -> Command | None:
        """Take the next command, if there is one."""

    def wait(self) -> Command:
        """Wait for a command and take it."""


@dataclass(slots=True)
class Mailbox:
    """Commands on their way to the training thread, which takes them between two chunks."""

    _commands: deque[Command] = field(default_factory=deque)
    _arrived: threading.Condition = field(default_factory=threading.Condition)

    def post(self, command: Command) -> None:
        """Add a command; wakes the training thread if it waits."""
        with self._arrived:
            self._commands.append(command)
            self._arrived.notify()

    def take(self) -> Command | None:
        """Take the oldest command, if there is one."""
        with self._arrived:
            return self._commands.popleft() if self._commands else None

    @property
    def waits(self) -> bool:
        """Whether there is a command that nobody has taken."""
        return bool(self._commands)

    def linger(self, seconds: float) -> None:
        """Wait for a command for so long, without taking it."""
        with self._arrived:
            self._arrived.wait_for(lambda: bool(self._commands), seconds)

    def wait(self) -> Command:
        """Wait for a command and take it; how a paused run spends its time."""
        with self._arrived:
            self._arrived.wait_for(lambda: bool(self._commands))
            return self._commands.popleft()


def from_signal(number: int, time: float, *, again: bool) -> Command:
    """The command that a signal stands for: the first stops gracefully, the next at once."""
    name = "stop_now" if again else "stop"
    return Command(0, time, f"{signal.Signals(number).name} to {who()}", name)
