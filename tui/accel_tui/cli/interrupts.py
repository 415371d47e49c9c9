"""Handles Ctrl-C for a run in the foreground: stop, stop now, terminate, kill."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

import psutil

from accel_engine.errors import RunError
from accel_engine.run import RunInfo, request
from accel_tui.formatting.runs import DIRECTORY_LOST

TIMEOUTS = (None, 15.0, 5.0, None)
"""Seconds to wait after each stage before the next one; ``None`` for no limit."""


class Interrupts:
    """Counts Ctrl-C (and SIGTERM) and stops the run in stages, one per signal.

    The stages: stop with a checkpoint; stop now; SIGTERM; SIGKILL. After a timeout, the next stage follows
    without another signal.
    """

    def __init__(self) -> None:
        self._signals = 0
        self._stage = 0
        self._stage_started = 0.0
        self._previous_handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous_handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def escalate(self, info: RunInfo) -> Iterator[str]:
        """Perform the due stages on a live run; yield a message for each."""
        while self._stage < len(TIMEOUTS) and (self._stage < self._signals or self._is_overdue()):
            stage = (_stop, _stop_now, _terminate, _kill)[self._stage]
            self._stage += 1
            self._stage_started = time.monotonic()
            with contextlib.suppress(RunError, psutil.Error):  # the run has just ended
                yield stage(info)

    def _is_overdue(self) -> bool:
        timeout = TIMEOUTS[self._stage - 1] if self._stage else None
        return timeout is not None and time.monotonic() - self._stage_started > timeout

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1


def _stop(info: RunInfo) -> str:
    if info.is_directory_lost:
        return f"{DIRECTORY_LOST}: its engine stops by itself (press Ctrl-C or send SIGTERM again to stop it now)"
    request(info.directory, "stop")
    return "stopping with a checkpoint (press Ctrl-C or send SIGTERM again to stop now, without one)"


def _stop_now(info: RunInfo) -> str:
    if info.is_directory_lost:
        return _terminate(info)
    request(info.directory, "stop_now")
    limit = sum(filter(None, TIMEOUTS))
    return (
        f"stopping now; the last checkpoint is kept (an engine that does not stop is killed after {limit:g} s; "
        "press Ctrl-C or send SIGTERM again to terminate it)"
    )


def _terminate(info: RunInfo) -> str:
    for process in _engine_processes(info):
        process.terminate()
    return "the engine does not stop: sent SIGTERM"


def _kill(info: RunInfo) -> str:
    for process in _engine_processes(info):
        process.kill()
    return "the engine does not exit: sent SIGKILL; the last checkpoint is kept"


def _engine_processes(info: RunInfo) -> list[psutil.Process]:
    """The live processes of the engine on this machine, its children first."""
    if info.pid is None:
        return []
    engine = psutil.Process(info.pid)
    return [*engine.children(recursive=True), engine]
