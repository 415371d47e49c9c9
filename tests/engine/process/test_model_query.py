"""Checks before a query's process starts, and its cancellation."""

import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from accel_engine.process.model_query import ModelQuery

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.process import engine_process, model_query
from accel_engine.requests.describe_data import describe_data
from accel_engine.requests.predict import predict_examples
from accel_engine.run import create
from accel_engine.run.runs.creation import create_recorded
from accel_engine.run.store.connection import connect

RECORDED = {"name": "", "model": "tiny", "data": "train.py", "strategy": "default", "epochs": 3}


@pytest.fixture
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "find_installation", lambda: pytest.fail("an engine process is begun"))


@pytest.mark.usefixtures("_no_engine")
def test_a_run_without_a_checkpoint_is_rejected() -> None:
    with pytest.raises(RunError, match="has no checkpoint"):
        predict_examples(create(Plan()), [])


@pytest.mark.usefixtures("_no_engine")
def test_a_run_of_a_script_is_rejected() -> None:
    with pytest.raises(RunError, match="was recorded by a script and has no checkpoints"):
        predict_examples(create_recorded(RECORDED, "python train.py"), [])


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An ended run whose data is missing, with a simulated checkpoint."""
    monkeypatch.setattr(model_query, "latest_checkpoint", lambda _: 14)
    (tmp_path / "gone.npz").touch()
    directory = create(Plan(data=str(tmp_path / "gone.npz")))
    (tmp_path / "gone.npz").unlink()
    with closing(connect(directory)) as connection:
        connection.set_meta(pending=None)
    return directory


def test_the_reason_of_a_failure_is_raised(run: Path) -> None:
    with ModelQuery("--revalidate", run, {}) as question, pytest.raises(RunError, match=r"gone\.npz"):
        question.answer()


def test_data_is_described_by_an_engine(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.ones((40, 3), np.float32), y=np.arange(40) % 2)
    known = describe_data(Plan(data=str(tmp_path / "mine.npz")))
    assert known["examples"] == 36
    assert known["inputs_spec"] == {"": "float32 3"}
    assert sum(known["class_counts"]) == 36
    (tmp_path / "bad.npz").write_bytes(b"nonsense")
    with pytest.raises(RunError, match="damaged"):
        describe_data(Plan(data=str(tmp_path / "bad.npz")))


def test_a_cancelled_query_ends_its_process(run: Path) -> None:
    with ModelQuery("--predict", run, {}) as question:
        threading.Thread(target=question.cancel).start()
        with pytest.raises(RunError, match="exited unexpectedly"):
            question.answer()
    assert question._process.returncode == -9
