"""What is refused before there is an engine process, and what becomes of one that is not waited for."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import launch, model_query
from accel_engine.errors import RunError
from accel_engine.model_query import ModelQuery
from accel_engine.plan import Plan
from accel_engine.prediction import predict
from accel_engine.run import create
from accel_engine.run.creation import create_recorded, put
from accel_engine.run.schema import connect

RECORDED = {"name": "", "model": "tiny", "data": "train.py", "strategy": "default", "epochs": 3}


@pytest.fixture
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_installation", lambda: pytest.fail("an engine process is begun"))


@pytest.mark.usefixtures("_no_engine")
def test_a_run_without_a_checkpoint_has_no_model_to_ask() -> None:
    with pytest.raises(RunError, match="has no checkpoint"):
        predict(create(Plan()), [], 1)


@pytest.mark.usefixtures("_no_engine")
def test_the_model_of_a_scripts_run_is_the_scripts() -> None:
    with pytest.raises(RunError, match="was recorded by a script and has no checkpoints"):
        predict(create_recorded(RECORDED, "python train.py"), [], 1)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An ended run of data that is gone, which seems to have a checkpoint."""
    monkeypatch.setattr(model_query, "latest_checkpoint", lambda _: 14)
    (tmp_path / "gone.npz").touch()
    directory = create(Plan(data=str(tmp_path / "gone.npz")))
    (tmp_path / "gone.npz").unlink()
    with closing(connect(directory)) as connection:
        put(connection, pending=None)
    return directory


def test_why_the_process_cannot_answer_is_said(run: Path) -> None:
    with ModelQuery("--revalidate", run, {}) as question, pytest.raises(RunError, match=r"gone\.npz"):
        question.answer()


def test_who_is_no_longer_waited_for_ends(run: Path) -> None:
    with ModelQuery("--predict", run, {}) as question:
        threading.Thread(target=question.cancel).start()
        with pytest.raises(RunError, match="exited unexpectedly"):
            question.answer()
    assert question._process.returncode == -9
