"""``accel-tui search`` with real engines: its process is killed while a trial trains, and the search is continued."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from accel_engine.run import Status, list_runs
from accel_engine.search.study_paths import find_study, studies
from accel_engine.search.study_reader import StudyReader

SEARCH = (
    *("search", "--model", "mlp", "--data", "digits", "--xla", "off", "--epochs", "3", "--name", "tiny", "--json"),
    *("--over", "learning_rate=1e-3,1e-2", "--objective", "memory", "--confirm", "0"),
)


def test_a_killed_search_goes_on_with_its_trials(program: Path, wait_until: Callable[..., None]) -> None:
    with subprocess.Popen([program, *SEARCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        wait_until(lambda: studies() and any(each.status is Status.RUNNING for each in list_runs()), "the first trial")
        for process in psutil.Process(command.pid).children():
            os.kill(process.pid, signal.SIGKILL)
        _, errors = command.communicate(timeout=120)
    assert command.returncode == 1
    assert "accel-tui search --resume tiny" in errors
    done = subprocess.run(
        [program, "search", "--resume", "tiny", "--json"], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (last["event"], last["outcome"], last["states"]) == ("search_ended", "finished", {"finished": 2})
    assert last["best"]["objectives"]["validation_accuracy"] > 0.5
    assert last["best"]["objectives"]["memory"] > 1e6
    assert {"--learning-rate", "--model"} <= {*last["best"]["command"].split()}
    runs = [each.info for each in list_runs() if each.info]
    assert {(run.study, run.trial, run.status, run.annotations.tags) for run in runs} == {
        ("tiny", 0, Status.FINISHED, ("tiny",)),
        ("tiny", 1, Status.FINISHED, ("tiny",)),
    }
    with StudyReader(find_study("tiny")) as study:
        reports = [report.epoch for each in study.reports.values() for report in each.values()]
        assert reports == [1, 2, 3, 1, 2, 3]
