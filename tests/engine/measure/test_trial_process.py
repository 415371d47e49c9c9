import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from accel_engine.measure import trial_process
from accel_engine.measure.trial_process import LAST_LINES, TrialProcess, exit_error, exit_reason
from accel_engine.plan import Plan
from accel_engine.process import engine_call
from accel_engine.requests.try_plan import TrialStart
from waiting import wait_until

START = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    "I0000 00:00:1795701232.546177    9816 port.cc:153] oneDNN custom operations are on.\n"
)


@pytest.mark.parametrize(
    ("status", "log", "reason"),
    [
        (-11, START, " by signal SIGSEGV"),
        (-6, f"{START}std::bad_alloc\n\n", " by signal SIGABRT: std::bad_alloc"),
        (1, "", " with status 1"),
        (-250, "", " by signal 250"),
    ],
)
def test_the_reason_of_an_exit_is_no_line_of_every_start(status: int, log: str, reason: str) -> None:
    assert exit_reason(status, log) == reason


_RETRIED = (
    "W0000 bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.29GiB. The caller "
    "indicates that this is not a failure, but this may mean that there could be performance gains.\n"
)


@pytest.mark.parametrize(
    ("status", "log", "out_of_memory", "message"),
    [
        (-9, "", True, "the engine was killed (SIGKILL), probably for lack of memory"),
        (-6, f"{START}terminate called\nstd::bad_alloc\n", True, "out of memory: the engine exited"),
        (-11, _RETRIED, False, "the engine exited by signal SIGSEGV"),
        (1, "failed to allocate 1 GB\n" + "a line\n" * LAST_LINES, False, "the engine exited with status 1: a line"),
    ],
)
def test_only_the_last_lines_tell_that_memory_ran_out(status: int, log: str, out_of_memory: bool, message: str) -> None:
    error = exit_error(status, log)
    assert error.out_of_memory is out_of_memory
    assert str(error).startswith(message)


_LEADER = """
import json, subprocess, sys
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(json.dumps({"kind": "TrialAnswer", "fields": {"seconds": 0.0}, "number": 0}), flush=True)
sys.stdin.read()
"""


def test_processes_that_a_trial_has_started_end_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They may be in native code, where they notice nothing."""

    def spawn(*options: str, stderr: Any, isolated: bool, **_: Any) -> "subprocess.Popen[str]":
        assert (options, isolated) == (("--request", "try_plan"), True)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, "-c", _LEADER]
        return subprocess.Popen(command, stderr=stderr, text=True, start_new_session=True, **pipes)

    monkeypatch.setattr(engine_call, "spawn", spawn)
    monkeypatch.setattr(trial_process, "is_isolated", lambda _: True)
    plan = Plan(strategy="multi-worker", local_workers=2)
    process = TrialProcess(TrialStart(plan), tmp_path, lambda: False)
    assert process.save() == 0.0
    members = psutil.Process(process.pid).children()
    assert len(members) == 1
    process.close(0.0)
    wait_until(lambda: not members[0].is_running() or members[0].status() == psutil.STATUS_ZOMBIE)
