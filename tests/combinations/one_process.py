"""The program with its engines in this process: a command of ``accel-tui`` trains, evaluates and measures here.

An engine process imports TensorFlow for seconds; a table of thousands of cells has no time for that. What answers and
trains is the same code, in a thread with a pipe to each side, or in the calling thread.
"""

import os
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, TextIO

import pytest

from accel_engine import strategies
from accel_engine.engine_main import request_server
from accel_engine.errors import AccelError, RunError
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.requests.protocol.channel import Channel
from accel_engine.requests.protocol.request import EngineRequest, find_request, request_function
from accel_engine.run import RunReader
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search.engine_runs import DirectStarter, EngineRuns
from accel_engine.search.process import run_search
from accel_engine.search.study_paths import LOCK
from engine.training.conftest import Gym
from tui.cli.conftest import no_warm_engine

_pipes = threading.local()
"""What an engine in a thread has for standard input and output."""

_real_spawn, _real_start = engine_process.spawn, engine_process.start_engine


class Imported:
    """TensorFlow, which this process has imported."""

    imported = True

    def wait(self) -> None:
        """Nothing is to be waited for."""


class EngineInThread:
    """Stands in for the process of an engine that converses.

    Attributes:
        asked: The requests of those that were started.
        unexpected: What they raised besides an ``AccelError``, with its traceback.
    """

    asked: ClassVar[list[str]] = []
    unexpected: ClassVar[list[str]] = []
    returncode: int | None = None
    pid = 0

    def __init__(self, *arguments: str) -> None:
        requests, self._to_engine = os.pipe()
        self._from_engine, replies = os.pipe()
        self.stdin, self.stdout = os.fdopen(self._to_engine, "w"), os.fdopen(self._from_engine)
        self.asked.append(arguments[1])
        self._thread = threading.Thread(
            target=self._serve, args=(arguments[1], os.fdopen(requests), os.fdopen(replies, "w"))
        )
        self._thread.start()

    def _serve(self, name: str, requests: TextIO, replies: TextIO) -> None:
        with requests, replies:
            _pipes.channel = Channel(requests, replies)
            try:
                request_server.serve_request(find_request(name), Imported())  # type: ignore[arg-type]
            except Exception:
                self.unexpected.append(traceback.format_exc())
                raise

    def poll(self) -> int | None:
        """Return the exit status, or nothing while it answers."""
        return None if self._thread.is_alive() else 0

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        self._thread.join(timeout)
        return 0

    def kill(self) -> None:
        """Nothing: it ends with its input."""


def _noted(request: type[EngineRequest[Any]]) -> Callable[..., Any]:
    """The function of a request, which notes what it raises besides the errors for users."""
    function = request_function(request)

    def ask(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except AccelError:
            raise
        except BaseException:
            EngineInThread.unexpected.append(traceback.format_exc())
            raise

    return ask


def _received(channel: Channel, *kinds: type) -> Iterator[Any]:
    """Messages until the input ends, with which a process would exit."""
    while (message := channel.receive(*kinds)) is not None:
        yield message[0]
    raise RunError("the input has ended")


class Ended:
    """Stands in for a process that has ended."""

    returncode: int | None = 0
    pid = 0

    def poll(self) -> int:
        """Return the exit status."""
        return 0

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status."""
        return 0


def _has_processes(directory: Path) -> bool:
    with closing(RunReader(directory)) as reader:
        return strategies.find(str(reader.info().plan_values["strategy"])).processes


def install(monkeypatch: pytest.MonkeyPatch, gym: Gym) -> None:
    """Have the engines that commands start in this process, but for strategies of several processes."""

    def start(directory: Path, environment: Mapping[str, str] | None = None) -> Any:
        if _has_processes(directory):
            return _real_start(directory, environment)
        EngineInThread.asked.append("--run")
        with closing(RunReader(directory)) as reader:
            gym.train_directory(directory, Plan.from_mapping(reader.info().plan_values))
        return Ended()

    def spawn(*arguments: str, **more: Any) -> Any:
        if more.get("isolated") or arguments[:1] != ("--request",):
            return _real_spawn(*arguments, **more)
        return EngineInThread(*arguments)

    def search(directory: Path) -> Ended:
        EngineInThread.asked.append("--search")
        with WriterLock(directory, LOCK):
            run_search(directory, EngineRuns(DirectStarter()), lambda _: None)
        return Ended()

    monkeypatch.setattr(EngineInThread, "asked", [])
    monkeypatch.setattr(EngineInThread, "unexpected", [])
    monkeypatch.setattr(engine_process, "start_engine", start)
    monkeypatch.setattr("accel_engine.process.engine_call.spawn", spawn)
    monkeypatch.setattr(request_server, "claim_pipes", lambda: _pipes.channel)
    monkeypatch.setattr(request_server, "until_input_ends", _received)
    monkeypatch.setattr(request_server, "request_function", _noted)
    monkeypatch.setattr("accel_engine.search.launch.start_search_process", search)
    monkeypatch.setattr("accel_engine.run_queue.queue.ensure_waiter", lambda: None)
    monkeypatch.setattr("accel_tui.cli.training_run.WarmEngine", no_warm_engine)
