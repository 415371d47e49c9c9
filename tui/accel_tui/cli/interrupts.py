"""What Ctrl-C does to a run that is trained in the foreground: ask, then ask harder, then end the engine."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

import psutil

from accel_engine.errors import RunError
from accel_engine.run import RunInfo, request

PATIENCE = (None, 15.0, 5.0, None)
"""Seconds that an engine has to end after each stage, before the next; ``None`` for as long as it takes."""


class Interrupts:
    """Counts Ctrl-C (and SIGTERM), and takes the run a stage further to its end at each.

    The stages: stop and keep a checkpoint; stop now; TERM to the engine's process; KILL. An engine that
    does not obey in time is taken to the next stage without another Ctrl-C, except from the first.
    """

    def __init__(self) -> None:
        self._count = 0
        self._stage = 0
        self._since = 0.0
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def act(self, info: RunInfo) -> Iterator[str]:
        """Do what is due to a live run, and say it."""
        while self._stage < len(PATIENCE) and (self._stage < self._count or self._is_overdue()):
            stage = (_stop, _stop_now, _terminate, _kill)[self._stage]
            self._stage += 1
            self._since = time.monotonic()
            with contextlib.suppress(RunError, psutil.Error):  # it has ended meanwhile
                yield stage(info)

    def _is_overdue(self) -> bool:
        patience = PATIENCE[self._stage - 1] if self._stage else None
        return patience is not None and time.monotonic() - self._since > patience

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1


def _stop(info: RunInfo) -> str:
    request(info.directory, "stop")
    return "stopping, with a checkpoint (Ctrl-C again: at once, without one)"


def _stop_now(info: RunInfo) -> str:
    request(info.directory, "stop_now")
    return "stopping now; the last checkpoint stays"


def _terminate(info: RunInfo) -> str:
    for process in _engine(info):
        process.terminate()
    return "the engine does not stop: asked its process to end (TERM)"


def _kill(info: RunInfo) -> str:
    for process in _engine(info):
        process.kill()
    return "the engine does not end: killed it (KILL); the last checkpoint stays"


def _engine(info: RunInfo) -> list[psutil.Process]:
    """The processes of a run's engine, which is on this machine and lives: its children before itself."""
    if info.pid is None:
        return []
    engine = psutil.Process(info.pid)
    return [*engine.children(recursive=True), engine]
