"""What is refused before there is an engine process."""

import pytest

from accel_engine import launch
from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.prediction import predict
from accel_engine.run import create
from accel_engine.run.making import create_recorded

RECORDED = {"name": "", "model": "tiny", "data": "train.py", "strategy": "default", "epochs": 3}


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "installation", lambda: pytest.fail("an engine process is begun"))


def test_a_run_without_a_checkpoint_has_no_model_to_ask() -> None:
    with pytest.raises(RunError, match="has no checkpoint yet"):
        predict(create(Plan()), [], 1)


def test_the_model_of_a_scripts_run_is_the_scripts() -> None:
    with pytest.raises(RunError, match="is a script's, which alone keeps its model"):
        predict(create_recorded(RECORDED, "python train.py"), [], 1)
