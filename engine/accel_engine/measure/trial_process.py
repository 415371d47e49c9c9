"""An engine process that tries one plan: it compiles the plan's steps, and takes steps when it is asked to."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from accel_engine import strategies
from accel_engine.errors import AccelError, RunError
from accel_engine.plan.isolation import is_isolated
from accel_engine.plan.resolved_plan import resolve
from accel_engine.process.engine_call import EngineConnection
from accel_engine.requests.protocol.request import ExamplesDone, Problem
from accel_engine.requests.try_plan import (
    ReturnToStart,
    SaveTrial,
    TakeSteps,
    TrialAnswer,
    TrialReady,
    TrialRequest,
    TrialStart,
    Turn,
    ValidateTrial,
)
from accel_engine.run.directory.log_file import lines_of

AnswerT = TypeVar("AnswerT", TrialReady, Turn, TrialAnswer)

POLL_SECONDS = 0.05
"""How often a waiting trial looks whether it should stop."""

_MEMORY = re.compile(r"bad_alloc|cannot allocate memory|out of memory|MemoryError|failed to allocate", re.IGNORECASE)
"""What a process writes that ends as the host's memory, or its limit, does not suffice."""

LAST_LINES = 5
"""Lines of a log that give the reason of its exit. TensorFlow also writes of memory in processes that continue."""

_HARMLESS = "not a failure"
"""Part of such a line, of an allocation that is tried again in another way."""

EXIT_SECONDS = 5.0
"""How long a process may take to exit by itself."""


class TrialCancelledError(AccelError):
    """Somebody asked a trial to stop."""

    def __init__(self) -> None:
        super().__init__("the trial was cancelled")


class TrialFailedError(AccelError):
    """A plan cannot be tried.

    Attributes:
        out_of_memory: Whether memory ran out, as far as is known.
    """

    def __init__(self, message: str, *, out_of_memory: bool) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory


class TrialProcess:
    """A process that tries one plan; under a strategy of several processes, it starts and leads the others.

    Args:
        start: The plan.
        folder: A directory for this trial, with a copy of the checkpoint to start from.
        should_stop: Whether to give up; asked while this waits.

    Attributes:
        ready: The compiled plan; ``None`` before.
        memory: Bytes that a device had allocated at most so far, or by which the process grew; ``None`` if unknown.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(self, start: TrialStart, folder: Path, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._has_group = strategies.find(start.plan.strategy).processes
        isolated = self._has_group and is_isolated(resolve(start.plan))
        request, kinds = TrialRequest(start, folder), (*TrialRequest.parts, Problem)
        self._connection = EngineConnection(TrialRequest, kinds, environment=request.environment, isolated=isolated)
        self._process = self._connection.process
        self.ready: TrialReady | None = None
        self.memory: float | None = None
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="trial-replies", daemon=True)
        self._reader.start()
        self._send(request)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def wait_ready(self, on_progress: Callable[[int, int], object] = lambda *_: None) -> TrialReady:
        """Wait until its steps are compiled.

        Args:
            on_progress: Called now and then with the number of examples read, and of all (0 if unknown).

        Raises:
            TrialFailedError: The plan cannot be tried; the message says why.
            TrialCancelledError: The trial was cancelled.
        """
        while isinstance(reply := self._receive(), ExamplesDone):
            on_progress(reply.done, reply.of)
        self.ready = self._answer(TrialReady, reply)
        return self.ready

    def take_for(self, seconds: float) -> Turn:
        """Take steps for some seconds; raises as :meth:`wait_ready` does."""
        return self._ask(TakeSteps(seconds=seconds), Turn)

    def take(self, steps: int) -> Turn:
        """Take a number of steps; raises as :meth:`wait_ready` does."""
        return self._ask(TakeSteps(steps), Turn)

    def take_at(self, rates: Sequence[float]) -> Turn:
        """Take a step at each of some learning rates, up to the first loss that is not finite; raises as above."""
        return self._ask(TakeSteps(rates=tuple(rates)), Turn)

    def restore(self, seed: int | None = None, *, initialize: bool = False) -> None:
        """Return to the start, from there on in the order of a seed; raises as :meth:`wait_ready` does.

        Args:
            seed: The seed; by default the plan's.
            initialize: Whether the weights are the initial ones of this seed, if the start is not a checkpoint.
        """
        self._ask(ReturnToStart(seed, initialize), TrialAnswer)

    def validate(self) -> tuple[dict[str, float], float]:
        """Validate the model: its metrics, none without validation data, and the seconds; raises as before."""
        found = self._ask(ValidateTrial(), TrialAnswer)
        return dict(found.metrics), found.seconds

    def save(self) -> float:
        """Save a checkpoint, and delete it; returns the seconds; raises as before."""
        return self._ask(SaveTrial(), TrialAnswer).seconds

    def _ask(self, message: Any, kind: type[AnswerT]) -> AnswerT:
        self._send(message)
        return self._answer(kind, self._receive())

    def _answer(self, kind: type[AnswerT], reply: Any) -> AnswerT:
        if not isinstance(reply, kind):
            raise TrialFailedError(f"the engine answered with {type(reply).__name__}", out_of_memory=False)
        self.memory = reply.memory
        return reply

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it has exited, which its missing reply tells
            self._connection.channel.send(message)

    def _read(self) -> None:
        try:
            for message, _ in self._connection.messages():
                self._replies.put(message)
        except RunError as error:
            self._replies.put(Problem(str(error)))
        self._replies.put(None)

    def _receive(self) -> Any:
        while True:
            if self._should_stop():
                raise TrialCancelledError
            with contextlib.suppress(queue.Empty):
                reply = self._replies.get(timeout=POLL_SECONDS)
                break
        if reply is None:
            raise exit_error(self._process.wait(), self._connection.log)
        if isinstance(reply, Problem):
            raise TrialFailedError(reply.text, out_of_memory=reply.out_of_memory)
        return reply

    def close(self, seconds: float = EXIT_SECONDS) -> None:
        """End the process: its standard input ends, and it is killed if it has not exited after some seconds."""
        self._connection.channel.stop_sending()
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_SECONDS)
        if self._has_group:
            self._kill_group()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._connection.close()

    def _kill_group(self) -> None:
        """Kill the process with those that it has started, which may wait in native code for each other."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all have exited
            os.killpg(self._process.pid, signal.SIGKILL)


def exit_error(status: int, log: str) -> TrialFailedError:
    """The error of a process that exited without a reply.

    Args:
        status: Its exit status; negative for a signal.
        log: Its log.
    """
    if status == -signal.SIGKILL:
        return TrialFailedError("the engine was killed (SIGKILL), probably for lack of memory", out_of_memory=True)
    if any(_MEMORY.search(line) and _HARMLESS not in line for line in lines_of(log)[-LAST_LINES:]):
        return TrialFailedError("out of memory: the engine exited", out_of_memory=True)
    return TrialFailedError(f"the engine exited{exit_reason(status, log)}", out_of_memory=False)


def exit_reason(status: int, log: str) -> str:
    """Why a process exited without a reply: the signal that ended it, or its status, and the last line of its log.

    Args:
        status: Its exit status; negative for a signal.
        log: Its log. Lines that TensorFlow writes at every start do not count.
    """
    lines = lines_of(log)
    how = f" with status {status}" if status >= 0 else f" by signal {_signal_name(-status)}"
    return how + (f": {lines[-1]}" if lines else "")


def _signal_name(number: int) -> str:
    """The name of a signal, such as ``SIGSEGV``; its number if it has none."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return str(number)
