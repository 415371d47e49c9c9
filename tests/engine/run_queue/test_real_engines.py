"""Two queued runs with real engines, of which the process that starts them is killed between the two."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from accel_engine import run
from accel_engine.events import RunEnded, RunStarted
from accel_engine.keep_alive.memory_restart import adapted
from accel_engine.run import RunReader, Status
from accel_engine.run_queue import queue
from accel_engine.run_queue.queue_database import is_waiter_running
from engine.run_queue.conftest import queued

TINY = {"epochs": 1, "steps_per_epoch": 20, "validation": "off"}


def starters(home: Path) -> Iterator[psutil.Process]:
    """The processes that start runs of a test."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            is_starter = "accel_engine.run_queue" in process.cmdline()
            if is_starter and process.environ().get("ACCEL_TUI_HOME") == str(home):
                yield process


def status(directory: Path) -> Status:
    with closing(RunReader(directory, steps=False)) as reader:
        return reader.info().status


@pytest.fixture(autouse=True)
def _ended(home: Path) -> Iterator[None]:
    yield
    for process in starters(home):
        process.kill()
    for directory in run.runs_directory().iterdir():
        with closing(RunReader(directory)) as reader:
            if (info := reader.info()).status.live and info.pid:
                os.kill(info.pid, signal.SIGKILL)


def test_an_engine_that_ends_brings_the_queue_going_again(
    home: Path, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (queued(name, **TINY) for name in ("first", "second"))
    queue.enqueue(first)
    with monkeypatch.context() as terminal:
        terminal.setenv("CUDA_VISIBLE_DEVICES", "-1")
        queue.enqueue(second)
    wait_until(lambda: status(first) is not Status.QUEUED, "the first run")
    wait_until(lambda: len(list(starters(home))) == 1, "the end of a process that there was no need for")
    (starter,) = starters(home)

    starter.kill()
    wait_until(lambda: not is_waiter_running(), "the end of the process")
    assert status(second) is Status.QUEUED
    wait_until(lambda: status(second) is Status.FINISHED, "the second run")

    assert status(first) is Status.FINISHED
    with closing(RunReader(first)) as one, closing(RunReader(second)) as other:
        (ended,) = (event for _, event in one.events(0, RunEnded))
        (started,) = (event for _, event in other.events(0, RunStarted))
    assert started.time >= ended.time
    found = adapted(second)  # how it would be started again after a kill, whoever does so
    assert found is not None
    assert found[1].variables["CUDA_VISIBLE_DEVICES"] == "-1"
    assert queue.entries() == []
    wait_until(lambda: not is_waiter_running(), "the end of the process that has nothing left to start")
