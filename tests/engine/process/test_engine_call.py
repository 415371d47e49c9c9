"""Checks before an engine's process starts, the folder of a request, and real answers."""

import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.process import engine_call as asking
from accel_engine.process import engine_process
from accel_engine.process.engine_call import EngineCall, ask
from accel_engine.requests.describe_data import DataRequest
from accel_engine.requests.predict import PredictionRequest
from accel_engine.requests.protocol import model_reference
from accel_engine.requests.protocol.request import FolderRequest
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.run import create
from accel_engine.run.runs.creation import create_recorded
from accel_engine.run.store.database import RunDatabase

RECORDED = {"name": "", "model": "tiny", "data": "train.py", "strategy": "default", "epochs": 3}


@pytest.fixture
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "find_installation", lambda: pytest.fail("an engine process is begun"))


@pytest.mark.usefixtures("_no_engine")
def test_a_run_without_a_checkpoint_is_rejected() -> None:
    with pytest.raises(RunError, match="has no checkpoint"):
        ask(PredictionRequest(create(Plan())))


@pytest.mark.usefixtures("_no_engine")
def test_a_run_of_a_script_is_rejected() -> None:
    with pytest.raises(RunError, match="was recorded by a script and has no checkpoints"):
        ask(PredictionRequest(create_recorded(RECORDED, "python train.py")))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An ended run whose data is missing, with a simulated checkpoint."""
    monkeypatch.setattr(model_reference, "latest_checkpoint", lambda _: 14)
    (tmp_path / "gone.npz").touch()
    directory = create(Plan(data=str(tmp_path / "gone.npz")))
    (tmp_path / "gone.npz").unlink()
    with closing(RunDatabase(directory)) as connection:
        connection.set_meta(pending=None)
    return directory


def test_the_reason_of_a_failure_is_raised(run: Path) -> None:
    with pytest.raises(RunError, match=r"gone\.npz"):
        ask(RevalidationRequest(run))


def test_data_is_described_by_an_engine(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.ones((40, 3), np.float32), y=np.arange(40) % 2)
    known = ask(DataRequest(Plan(data=str(tmp_path / "mine.npz"))))
    assert known.entry.examples == 36
    assert known.inputs == {"": "float32 3"}
    assert sum(known.entry.class_counts) == 40  # of all splits


@pytest.mark.campaign
def test_data_that_is_damaged_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"nonsense")
    with pytest.raises(RunError, match="damaged"):
        ask(DataRequest(Plan(data=str(tmp_path / "bad.npz"))))


def test_a_plan_that_the_engine_finds_invalid_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "mine.npz").touch()
    request = DataRequest(Plan(data=str(tmp_path / "mine.npz")))
    (tmp_path / "mine.npz").unlink()
    with pytest.raises(RunError, match=r"mine\.npz"):
        ask(request)


def test_a_request_that_the_engine_does_not_understand_is_a_problem() -> None:
    command = [sys.executable, "-m", "accel_engine.process", "--request", "evaluate"]
    done = subprocess.run(command, input="garbage\n", capture_output=True, text=True, timeout=120, check=True)
    assert '"kind": "Problem"' in done.stdout
    assert "the request is not what this version understands" in done.stdout


def test_an_engine_ends_with_the_program_that_asked(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ndef load():\n    time.sleep(600)\n")
    asked = EngineCall(DataRequest(Plan(data=f"{tmp_path}/slow.py:load")))
    asked.connection.channel.send(asked._request)
    asked.connection.channel.stop_sending()
    assert asked.connection.process.wait(120) == 0
    asked.__exit__(None, None, None)


def test_an_engine_removes_the_folder_of_a_killed_program(tmp_path: Path) -> None:
    asked = EngineCall(PredictionRequest(tmp_path / "absent.keras", folder=tmp_path))
    (folder,) = tmp_path.iterdir()
    (folder / "values.npy").touch()
    asked.connection.channel.send(asked._request)
    asked.connection.channel.stop_sending()
    assert asked.connection.process.wait(120) == 0
    assert not any(tmp_path.iterdir())
    asked.__exit__(None, None, None)


@dataclass(frozen=True, slots=True)
class _Written:
    step: int


@dataclass(frozen=True, slots=True)
class _WithFolder(FolderRequest[_Written]):
    function: ClassVar = "nowhere:nothing"
    result: ClassVar = _Written


WRITES = """
import json, pathlib, sys
folder = pathlib.Path(json.loads(sys.stdin.readline())["fields"]["folder"])
(folder / "report").write_text("found")
print(json.dumps({"kind": "_Written", "fields": {"step": 40}, "number": 0}))
"""


def test_a_folder_has_the_files_of_an_answer_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*_: str, stderr: Any, **__: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
        return subprocess.Popen([sys.executable, "-c", WRITES], text=True, **pipes)

    monkeypatch.setattr(asking, "spawn", spawn)
    with EngineCall(_WithFolder(folder=tmp_path)) as asked:
        assert asked.result() == _Written(40)
        (folder,) = tmp_path.iterdir()
        assert (folder / "report").read_text() == "found"
    assert not any(tmp_path.iterdir())


def test_nothing_is_left_where_no_engine_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*_: str, **__: Any) -> None:
        assert any(tmp_path.iterdir())
        raise RunError("no TensorFlow")

    monkeypatch.setattr(asking, "spawn", spawn)
    with pytest.raises(RunError, match="no TensorFlow"):
        EngineCall(_WithFolder(folder=tmp_path))
    assert not any(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"cannot write to {tmp_path}/absent: No such file or directory"):
        EngineCall(_WithFolder(folder=tmp_path / "absent"))
