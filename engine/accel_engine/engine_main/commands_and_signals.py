"""Reads commands to a run, and signals to its engine, for the training thread."""

import signal
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.run import RunWriter
from accel_engine.run.engine.commands import Command
from accel_engine.training.commands.command_mailbox import CommandMailbox, StopRequested, command_from_signal

STOP_NOW_SECONDS = 3.0
"""How long training may still run (while tracing a graph, for example) after a ``stop_now`` command."""


class CommandReader:
    """Reads commands and signals in the main thread, and knows which of them stop the run.

    Args:
        writer: The run's writer.

    Attributes:
        writer: The run's writer.
        mailbox: Where the training thread finds the commands.
        stop: The last command that stops the run; ``None`` if there is none.
        is_preempted: Whether the system stops this process, and no user: SIGTERM came first, and no other stop since.
    """

    def __init__(self, writer: RunWriter) -> None:
        self.writer = writer
        self.mailbox = CommandMailbox()
        self.stop: Command | None = None
        self.is_preempted = False
        self._signals: deque[int | Command] = deque()
        self._machine_ends = False
        self._exit_at: float | None = None

    def handle_signals(self) -> None:
        """Take this process's signals from now on."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda received, _: self._signals.append(received))

    def stop_before_end(self, cloud: str, reason: str) -> None:
        """Stop as by a signal, before a cloud takes this machine away; may be called in any thread."""
        self._signals.append(Command(0, clock.now(), cloud, "stop", reason=reason))

    @property
    def is_stop_overdue(self) -> bool:
        """Whether a ``stop_now`` came so long ago that this process must exit without the training thread."""
        return self._exit_at is not None and time.monotonic() > self._exit_at

    def forward(self) -> None:
        """Pass new commands and signals to the training thread."""
        with suppress(RunError):  # read again at the next poll, unless the run has just been closed
            new = self.mailbox.post_new(self.writer.commands())
            self._take(new)
            if any(command.stops for command in new):  # a user's stop is for good
                self.is_preempted = False
        self.forward_signals()

    def forward_signals(self) -> None:
        """Pass new signals to the training thread."""
        while self._signals:
            received = self._signals.popleft()
            if isinstance(received, Command):
                self._machine_ends = True
                if self.stop:
                    continue
                command = received
            elif received == signal.SIGTERM and self._machine_ends:
                continue  # the system shuts down: no reason to leave without a checkpoint
            else:
                if received != signal.SIGUSR1:  # Ctrl-C is a user's stop, after SIGTERM, too
                    self.is_preempted = received == signal.SIGTERM and (self.is_preempted or self.stop is None)
                command = command_from_signal(received, clock.now(), again=self.stop is not None)
            self.mailbox.post(command)
            self._take([command])
        if self.stop and self.writer.disk.problem:  # which may be later than the stop
            self.writer.disk.stop_waiting(partial(StopRequested, self.stop))

    def drop_withdrawn_stop(self) -> None:
        """Forget a stop that was not obeyed and that its sender has withdrawn."""
        if self.stop and self.writer.is_withdrawn(self.stop):
            self.stop = None

    def _take(self, commands: Sequence[Command]) -> None:
        """Note which commands stop the run, also while it waits for the disk."""
        for command in commands:
            if command.stops:
                self.stop = command
            if command.name == "stop_now":
                self._exit_at = self._exit_at or time.monotonic() + STOP_NOW_SECONDS
                self.writer.disk.stop_waiting(partial(StopRequested, command))
