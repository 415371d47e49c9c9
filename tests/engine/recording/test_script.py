"""A script of the user's in a separate process, however it ends."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from accel_engine import run
from accel_engine.events import Outcome, RunEnded
from accel_engine.recording.script import outcome_at_exit, outcome_of
from accel_engine.run import Status

from .conftest import Read

SCRIPT = """
import os, signal, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
from accel_engine import RunRecorder

class End(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1 and sys.argv[1] == "raise":
            raise ValueError("oh no")
        if epoch == 1 and sys.argv[1] == "exit":
            sys.exit(3)
        if epoch == 1 and sys.argv[1] == "interrupt":
            signal.raise_signal(signal.SIGINT)  # from outside it may meet a __del__, which ends it

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name="tiny")
model.compile("sgd", "mse")
model.fit(np.ones((40, 4)), np.ones(40), batch_size=8, epochs=10**6, verbose=0, callbacks=[RunRecorder("mine"), End()])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ("raise", Status.FAILED, "ValueError: oh no"),
        pytest.param("exit", Status.FAILED, "the script exited with status 3", marks=pytest.mark.campaign),
        ("interrupt", Status.STOPPED, "interrupted from the keyboard"),
    ],
)
def test_the_run_of_a_script_that_ends_early_says_why(script: Path, how: str, status: Status, reason: str) -> None:
    subprocess.run([sys.executable, script, how], stderr=subprocess.PIPE, check=False, timeout=120)

    (summary,) = run.list_runs()
    read = Read(summary.directory)
    (ended,) = read.all(RunEnded)
    assert (read.info.status, ended.reason) == (status, reason)
    assert ended.steps == len(read.series("loss"))
    assert read.info.name == "mine"
    assert read.info.plan_values["data"] == "train.py"
    assert shlex.split(read.info.script)[1:] == [str(script), how]


def test_the_run_of_a_script_that_is_killed_has_failed(script: Path, wait_until: Callable[..., None]) -> None:
    process = subprocess.Popen([sys.executable, script, "never"])
    wait_until(lambda: [each for each in run.list_runs() if each.steps > 10], "steps")
    assert run.list_runs()[0].status is Status.RUNNING
    process.kill()
    process.wait()

    wait_until(lambda: run.list_runs()[0].status is Status.FAILED, "the end of the run")
    assert run.list_runs()[0].reason.startswith("the script ended without ending the recording: it was killed")


def test_the_outcome_at_exit_is_that_of_an_exception_that_nobody_has_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("oh no")
    assert outcome_at_exit(None) == (Outcome.FINISHED, "")
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert outcome_at_exit(None) == (Outcome.FAILED, "ValueError: oh no")
    assert outcome_at_exit(error) == (Outcome.FINISHED, "")
    monkeypatch.setattr(sys, "last_value", "no exception")
    assert outcome_at_exit(None) == (Outcome.FINISHED, "")


def ipython(**names: object) -> ModuleType:
    module = ModuleType("IPython")
    vars(module).update(names)
    return module


@pytest.mark.parametrize("module", [ipython(get_ipython=lambda: None), ipython(), None])
def test_a_script_that_imports_ipython_is_no_interactive_session(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType | None
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(sys, "last_value", ValueError("oh no"), raising=False)
    assert outcome_at_exit(None) == (Outcome.FAILED, "ValueError: oh no")


@pytest.mark.parametrize("session", ["python", "IPython"])
def test_no_exception_ends_an_interactive_session(monkeypatch: pytest.MonkeyPatch, session: str) -> None:
    monkeypatch.setattr(sys, "last_value", ValueError("oh no"), raising=False)
    if session == "IPython":
        monkeypatch.setitem(sys.modules, session, ipython(get_ipython=object))
    else:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert outcome_at_exit(None) == (Outcome.FINISHED, "")


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (None, Outcome.FAILED, "fit was ended by an exception or an exit of the script"),
        (KeyboardInterrupt(), Outcome.STOPPED, "interrupted from the keyboard"),
        (SystemExit(), Outcome.STOPPED, "the script exited"),
        (SystemExit(0), Outcome.STOPPED, "the script exited"),
        (SystemExit(1), Outcome.FAILED, "the script exited with status 1"),
        (SystemExit(-1), Outcome.FAILED, "the script exited with status -1"),
        (SystemExit("no data"), Outcome.FAILED, "SystemExit: no data"),
        (ValueError("oh no"), Outcome.FAILED, "ValueError: oh no"),
    ],
)
def test_each_kind_of_exception_has_its_words(error: BaseException | None, outcome: Outcome, reason: str) -> None:
    assert outcome_of(error) == (outcome, reason)
