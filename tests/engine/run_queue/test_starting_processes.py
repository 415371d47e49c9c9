"""Several processes that start runs, and are killed, on stand-ins for engines: each run is started once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.run import RunReader, Status
from accel_engine.run_queue import queue
from engine.run_queue.conftest import Make

ENGINE = """
import os, sys, time
from pathlib import Path
from accel_engine.clock import now
from accel_engine.events import Outcome, RunEnded, RunStarted
from accel_engine.run import RunWriter

directory = Path(sys.argv[1])
writer = RunWriter(directory)
names = dict(run=directory.name, name="", host="", versions={})
writer.begin(RunStarted(time=now(), plan={}, first_step=0, pid=os.getpid(), **names))
log = os.open(Path(os.environ["ACCEL_TUI_HOME"]) / "began", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, f"+{directory.name}\\n".encode())
writer.heartbeat()
os.write(log, f"-{directory.name}\\n".encode())
writer.end(RunEnded(time=now(), outcome=Outcome.FINISHED, steps=0, epochs=0, seconds=0.0, reason=""))
"""
"""Notes when it trains."""

STARTER = f"""
import os, signal, subprocess, sys
from pathlib import Path
from accel_engine.process import engine_process
from accel_engine.run.runs.creation import assign_process
from accel_engine.run_queue import __main__ as starter

ENGINE = {ENGINE!r}

def trap(name):
    if os.environ.get("TRAP") == name:
        os.kill(os.getpid(), signal.SIGKILL)

def start(directory, environment):
    trap("before")
    arguments = [sys.executable, "-c", ENGINE, str(directory)]
    process = subprocess.Popen(arguments, env=os.environ | environment, stderr=subprocess.DEVNULL)
    trap("between")
    assign_process(directory, process.pid)
    return process

engine_process.start_engine = start
sys.exit(starter.main())
"""
"""The real process that starts runs, which starts stand-ins."""

ADDER = """
import sys
from accel_engine import run
from accel_engine.plan import Plan
from accel_engine.run_queue import queue, queue_database

queue_database.start_waiter = lambda: None
for index in range(5):
    queue.enqueue(run.create(Plan(model="mlp", name=f"{sys.argv[1]}{index}"), queued=True))
"""


def start(script: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", script, *arguments], env=os.environ | environment, text=True)


def all_finished() -> bool:
    statuses = []
    for directory in run.runs_directory().iterdir():
        with closing(RunReader(directory, steps=False)) as reader:
            statuses.append(reader.info().status)
    return set(statuses) == {Status.FINISHED}


def began(home: Path) -> list[str]:
    return (home / "began").read_text().split()


def test_of_several_processes_one_starts_runs(home: Path, add: Make, wait_until: Callable[..., None]) -> None:
    runs = [add(f"run{index}") for index in range(3)]
    queue.set_limit(2)

    starters = [start(STARTER) for _ in range(2)]
    assert [starter.wait(120) for starter in starters] == [0, 0]
    wait_until(all_finished, "the runs")

    noted = began(home)
    assert sorted(each for each in noted if each[0] == "+") == sorted(f"+{each}" for each in runs)
    training = [sum(1 if each[0] == "+" else -1 for each in noted[: index + 1]) for index in range(len(noted))]
    assert max(training) <= 2


@pytest.mark.parametrize("trap", ["before", "between"])
def test_a_process_that_is_killed_as_it_starts_a_run(
    trap: str, home: Path, add: Make, wait_until: Callable[..., None]
) -> None:
    runs = [add("one"), add("two")]

    assert start(STARTER, TRAP=trap).wait(120) == -signal.SIGKILL
    if trap == "between":  # an engine trains for longer than another takes to start, and the stand-in does not
        wait_until((home / "began").exists, "the engine that was started")
    assert start(STARTER).wait(120) == 0
    wait_until(all_finished, "the runs")

    assert [each for each in began(home) if each[0] == "+"] == [f"+{each}" for each in runs]
    assert queue.entries() == []


def test_several_terminals_add_runs_at_the_same_time(home: Path) -> None:
    adders = [start(ADDER, name) for name in "abc"]

    assert [adder.wait(120) for adder in adders] == [0, 0, 0]
    names = [entry.run.partition("-")[2] for entry in queue.entries()]
    assert sorted(names) == sorted(f"{name}{index}" for name in "abc" for index in range(5))
    for name in "abc":
        assert [each for each in names if each[0] == name] == [f"{name}{index}" for index in range(5)]
