"""An engine process that tries one plan: it compiles the plan's steps, and takes steps when it is asked to."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine import strategies
from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.plan.isolation import is_isolated
from accel_engine.plan.resolved_plan import resolve
from accel_engine.process.engine_process import spawn
from accel_engine.run.directory.log_file import lines_of

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


@dataclass(frozen=True, slots=True)
class TrialStart:
    """A plan to try, and where its steps begin.

    Attributes:
        plan: The plan.
        step: The step of the checkpoint to start from; 0 for the initial weights.
        run: Directory of the run that has the checkpoint; ``None`` for none.
    """

    plan: Plan
    step: int = 0
    run: Path | None = None


@dataclass(frozen=True, slots=True)
class TrialReady:
    """A plan whose steps are compiled.

    Attributes:
        build_seconds: How long it took to read the data and build the model.
        compile_seconds: How long it took to compile a step and take it.
        global_batch: Examples of a step.
        steps_per_epoch: Steps of an epoch; 0 if they are unknown.
        devices: TensorFlow's names of the devices that train.
        has_orders: Whether a seed gives another order of the examples.
        replicas: Number of replicas, which share the global batch.
        learning_rate: The optimizer's constant rate; ``None`` if it follows a schedule, or is unknown.
        optimizer: Its class; empty if the model has several.
        examples: Number of training examples; ``None`` for a stream.
        device_memory: Memory of each device in bytes; ``None`` for host memory.
    """

    build_seconds: float
    compile_seconds: float
    global_batch: int
    steps_per_epoch: int
    devices: tuple[str, ...]
    has_orders: bool
    replicas: int = 1
    learning_rate: float | None = None
    optimizer: str = ""
    examples: int | None = None
    device_memory: int | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether CPUs train, so that its memory is that of the process."""
        return self.devices[0].startswith("CPU")


@dataclass(frozen=True, slots=True)
class Turn:
    """Steps that were taken one after the other.

    Attributes:
        steps: Their number.
        examples: Number of their examples.
        seconds: How long they took.
        losses: The loss of each.
    """

    steps: int
    examples: int
    seconds: float
    losses: tuple[float, ...]

    @property
    def examples_per_second(self) -> float:
        """Examples a second."""
        return self.examples / self.seconds

    @property
    def steps_per_second(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds


class TrialProcess:
    """A process that tries one plan; under a strategy of several processes, it starts and leads the others.

    Args:
        start: The plan.
        folder: A directory of its own, with a copy of the checkpoint to start from.
        should_stop: Whether to give up; asked while this waits.

    Attributes:
        ready: The compiled plan; ``None`` before.
        memory: Bytes that a device had allocated at most so far, or by which the process grew; ``None`` if unknown.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(self, start: TrialStart, folder: Path, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._log = tempfile.TemporaryFile("w+", prefix="accel-tui-trial-")  # noqa: SIM115 (closed at the end)
        self._has_group = strategies.find(start.plan.strategy).processes
        try:
            isolated = self._has_group and is_isolated(resolve(start.plan))
            self._process = spawn("--try-plan", stderr=self._log, isolated=isolated)
        except BaseException:
            self._log.close()
            raise
        self.ready: TrialReady | None = None
        self.memory: float | None = None
        self._replies: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="trial-replies", daemon=True)
        self._reader.start()
        run = str(start.run) if start.run else None
        self._send({"plan": start.plan.to_mapping(), "folder": str(folder), "step": start.step, "run": run})

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def wait_ready(self, on_progress: Callable[[int, int], object] = lambda *_: None) -> TrialReady:
        """Wait until its steps are compiled.

        Args:
            on_progress: Called now and then with the number of examples read, and of all (0 if unknown).

        Raises:
            TrialFailedError: The plan cannot be tried; why.
            TrialCancelledError: It should stop.
        """
        while "done" in (reply := self._receive()):
            on_progress(reply["done"], reply["of"])
        described = reply["ready"]
        self.memory = described.pop("memory")
        self.ready = TrialReady(**{**described, "devices": tuple(described["devices"])})
        return self.ready

    def take_for(self, seconds: float) -> Turn:
        """Take steps for some seconds; raises as :meth:`wait_ready` does."""
        return self._taken({"seconds": seconds})

    def take(self, steps: int) -> Turn:
        """Take a number of steps; raises as :meth:`wait_ready` does."""
        return self._taken({"steps": steps})

    def take_at(self, rates: Sequence[float]) -> Turn:
        """Take a step at each of some learning rates, up to the first loss that is not finite; raises as above."""
        return self._taken({"rates": list(rates)})

    def restore(self, seed: int | None = None, *, initialize: bool = False) -> None:
        """Return to the start, from there on in the order of a seed; raises as :meth:`wait_ready` does.

        Args:
            seed: The seed; by default the plan's.
            initialize: Whether the weights are the initial ones of this seed, if the start is not a checkpoint.
        """
        self._ask({"restore": seed, "initialize": initialize})

    def validate(self) -> tuple[dict[str, float], float]:
        """Validate the model: its metrics, none without validation data, and the seconds; raises as before."""
        reply = self._ask({"validate": True})
        return reply["metrics"], reply["seconds"]

    def save(self) -> float:
        """Save a checkpoint, and delete it; returns the seconds; raises as before."""
        seconds: float = self._ask({"save": True})["seconds"]
        return seconds

    def _taken(self, request: Mapping[str, Any]) -> Turn:
        reply = self._ask(request)
        self.memory = reply["memory"]
        return Turn(**{**reply["taken"], "losses": tuple(reply["taken"]["losses"])})

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._send(request)
        return self._receive()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 (a pipe)
        with contextlib.suppress(OSError):  # it has exited, which its missing reply tells
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 (a pipe)
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                self._replies.put(json.loads(line))
        self._replies.put(None)

    def _receive(self) -> dict[str, Any]:
        while True:
            if self._should_stop():
                raise TrialCancelledError
            with contextlib.suppress(queue.Empty):
                reply = self._replies.get(timeout=POLL_SECONDS)
                break
        if reply is None:
            raise self._death()
        if "problem" in reply:
            raise TrialFailedError(reply["problem"], out_of_memory=reply["out_of_memory"])
        return reply

    def _death(self) -> TrialFailedError:
        """Why the process has exited without a reply."""
        status = self._process.wait()
        self._log.seek(0)
        return exit_error(status, self._log.read())

    def close(self, seconds: float = EXIT_SECONDS) -> None:
        """End the process: its standard input ends, and it is killed if it has not exited after some seconds."""
        assert self._process.stdin is not None  # noqa: S101 (a pipe)
        with contextlib.suppress(OSError):
            self._process.stdin.close()
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
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()

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
    how = f" with status {status}" if status >= 0 else f" by signal {signal_name(-status)}"
    return how + (f": {lines[-1]}" if lines else "")


def signal_name(number: int) -> str:
    """The name of a signal, such as ``SIGSEGV``; its number if it has none."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return str(number)
