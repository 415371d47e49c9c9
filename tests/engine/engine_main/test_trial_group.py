"""The processes of a trial, for which short scripts stand in."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from accel_engine.engine_main.trial_group import TrialGroup
from accel_engine.plan import Plan
from accel_engine.process import engine_call
from accel_engine.requests.protocol.channel import Channel
from accel_engine.requests.protocol.request import Problem
from accel_engine.requests.try_plan import TakeSteps, TrialRequest, TrialStart
from accel_engine.run.directory.run_paths import CHECKPOINTS
from waiting import wait_until

_MEMBER = """
import json, os, sys
task = json.loads(os.environ["TF_CONFIG"])["task"]
own, asked = task["index"], 0
device = 80 - own if task["type"] == "worker" else None
for line in sys.stdin:
    message = json.loads(line)
    match message["kind"], message["fields"]:
        case "TrialRequest", _:
            kind, fields = "MemberReady", {"memory": 100.0 + own, "device_memory": device}
        case "TakeSteps", {"steps": 1}:
            kind, fields = "Turn", {"steps": 1, "examples": 1, "seconds": 1.0, "losses": [], "memory": 200.0 + own}
        case "TakeSteps", {"steps": 2}:
            kind, fields = "Problem", {"text": "out of memory", "out_of_memory": True}
        case "TakeSteps", {"steps": 3}:
            os.kill(os.getpid(), 9)
        case "TellMemory", _:
            kind, fields = "TrialAnswer", {"memory": 300.0 + 10 * asked + own}
            asked += 1
    print(json.dumps({"kind": kind, "fields": fields, "number": 0}), flush=True)
"""

_ENDLESS = """
import sys, time
from accel_engine.engine_main.request_server import until_input_ends
from accel_engine.requests.protocol.channel import Channel
from accel_engine.requests.try_plan import TakeSteps
messages = until_input_ends(Channel(sys.stdin, sys.stdout), TakeSteps)
print("started", flush=True)
if "builds" in sys.argv:
    time.sleep(600)
for message in messages:
    print(message.steps, flush=True)
    time.sleep(600)
"""


class Started:
    """A group of stand-ins, and what its members report."""

    group: TrialGroup

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        self.problems: queue.SimpleQueue[Problem] = queue.SimpleQueue()
        monkeypatch.setenv("TF_CONFIG", "")
        monkeypatch.setenv("ACCEL_TUI_LOCAL_WORKERS", "")
        monkeypatch.setattr(engine_call, "spawn", self._spawn)
        self._request = TrialRequest(TrialStart(Plan()), tmp_path)

    def lead(self, workers: int = 2, *, coordinated: bool = False) -> TrialGroup:
        self.group = TrialGroup(self._request, self.problems.put, workers=workers, coordinated=coordinated)
        return self.group

    def _spawn(self, *options: str, environment: dict[str, str], new_session: bool, **_: Any) -> subprocess.Popen[str]:
        assert (options, new_session) == (("--request", "try_plan"), False)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started = subprocess.Popen([sys.executable, "-c", _MEMBER], env=os.environ | environment, text=True, **pipes)
        self.processes.append(started)
        return started

    def close(self) -> None:
        self.group.end()
        self.check_ended()

    def check_ended(self) -> None:
        assert all(process.poll() is not None for process in self.processes)
        wait_until(lambda: not any(each.name.startswith("replies of") for each in threading.enumerate()))
        assert self.problems.empty()  # being killed is none
        for process in self.processes:
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def test_workers_get_the_same_requests_and_tell_their_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(tmp_path, monkeypatch)
    group = started.lead()
    assert json.loads(os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}
    assert (tmp_path / "1" / CHECKPOINTS).is_dir()
    group.wait_ready()
    assert group.memory(10.0, on_cpu=True) == 10.0 + 101.0
    assert (group.device_memory(50), group.device_memory(90)) == (50, 79)  # the smallest one
    group.ask(TakeSteps(1))
    assert group.memory(10.0, on_cpu=False) == 201.0  # of one device at most
    group.ask(TakeSteps(1))
    assert group.memory(None, on_cpu=True) is None
    started.close()


def test_those_that_serve_a_coordinator_take_no_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(tmp_path, monkeypatch)
    group = started.lead(coordinated=True)
    assert len(started.processes) == 3
    group.wait_ready()
    assert group.device_memory(None) == 79  # the coordinator has none of the workers' devices
    group.ask(TakeSteps(3))
    assert group.memory(10.0, on_cpu=True) == 10.0 + 300.0 + 301.0 + 300.0  # two workers and a parameter server
    assert group.memory(None, on_cpu=False) == 311.0
    assert group.memory(10.0, on_cpu=True) == 10.0 + 320.0 + 321.0 + 320.0
    started.close()


@pytest.mark.parametrize(("steps", "reason"), [(2, "out of memory"), (3, "worker 1: the engine was killed (SIGKILL)")])
def test_what_stops_a_worker_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, reason: str
) -> None:
    started = Started(tmp_path, monkeypatch)
    started.lead().ask(TakeSteps(steps))
    problem = started.problems.get(timeout=120)
    assert problem.text.startswith(reason)
    assert problem.out_of_memory
    started.close()


def test_a_worker_that_cannot_be_started_is_the_only_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(tmp_path, monkeypatch)
    (tmp_path / "2").touch()  # where the directory of worker 2 would be
    with pytest.raises(NotADirectoryError):
        started.lead(workers=3)
    assert len(started.processes) == 1
    started.check_ended()


@pytest.mark.parametrize("does", ["builds", "takes steps"])
def test_a_process_ends_with_its_input_whatever_it_does(does: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, does], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        if does == "takes steps":
            Channel(process.stdout, process.stdin).send(TakeSteps(7))
            assert process.stdout.readline() == "7\n"
        process.stdin.close()
        assert process.wait(600) == 0
