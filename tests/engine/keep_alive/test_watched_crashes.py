"""The process that watches a run, on engines that are lost at once and need no TensorFlow."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.events import Event, Outcome, Recovered, RunEnded
from accel_engine.keep_alive.watcher import Watcher, _how
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.run import RunReader, Status
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import LOG, WATCHER_LOCK
from accel_engine.run.engine.commands import read_answer

PLAN = Plan(model="mlp", keep_alive="on")

CRASHING = """
import os, sys
from pathlib import Path
from accel_engine.keep_alive.restart import Restart
from accel_engine.run import RunWriter

writer = RunWriter(Path(sys.argv[1]))
writer.begin()
if restart := Restart.take():
    writer.write_event(restart.event(0))
    writer.close()
os._exit(3)
"""
"""What an engine does before it loads TensorFlow; then it crashes."""


def events(directory: Path) -> tuple[Event, ...]:
    with closing(RunReader(directory)) as reader:
        return reader.poll().events


def lost() -> Path:
    """A run whose engine has crashed."""
    directory = run.create(PLAN)
    (directory / LOG).touch()
    with start(directory, {}) as engine:
        assert engine.wait(120) == 3
    return directory


def start(directory: Path, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    values = {**os.environ, **environment}
    return subprocess.Popen([sys.executable, "-c", CRASHING, directory], env=values, text=True)


def watch(directory: Path) -> None:
    """What the process that watches does; others see by the lock that the run is not lost for good."""
    with WriterLock(directory, WATCHER_LOCK):
        Watcher(directory).watch()


def test_an_engine_that_crashes_each_time_reaches_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "0.01")
    started: list[subprocess.Popen[str]] = []

    def keep(directory: Path, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
        started.append(start(directory, environment))
        return started[-1]

    monkeypatch.setattr(engine_process, "start_engine", keep)
    directory = lost()

    watch(directory)

    assert [engine.wait(120) for engine in started] == [3] * 5

    found = events(directory)
    assert len([event for event in found if isinstance(event, Recovered)]) == 5
    ended = found[-1]
    assert isinstance(ended, RunEnded)
    assert ended.outcome is Outcome.FAILED
    assert ended.reason.startswith("the engine exited unexpectedly")
    assert ended.reason.endswith("; it was started again 5 times without a new checkpoint")
    assert ended.seconds == 0.0  # none of the engines has started the run


@pytest.mark.parametrize(("exit_status", "words"), [(3, " (exit status 3)"), (-9, " (SIGKILL)"), (None, "")])
def test_a_reason_has_the_way_in_which_the_engine_ended(exit_status: int | None, words: str) -> None:
    """It is unknown for a moment: the lock of a run is free just before its process has ended."""
    assert _how(exit_status) == words


def test_a_stop_during_the_pause_is_obeyed(monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]) -> None:
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "300")
    monkeypatch.setattr(engine_process, "start_engine", pytest.fail)
    directory = lost()
    watching = threading.Thread(target=watch, args=(directory,))
    watching.start()
    wait_until(lambda: "the engine is started again in 300 s" in (directory / LOG).read_text(), "the pause")
    number = run.send_command(directory, "stop")
    watching.join(120)

    assert not watching.is_alive()
    assert read_answer(directory, number) == (True, "stopped: the engine is not started again")
    with closing(RunReader(directory)) as reader:
        assert reader.info().status is Status.LOST
    assert not any(isinstance(event, Recovered) for event in events(directory))
