"""A run whose directory is deleted while its engine saves a checkpoint."""

import shutil
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.training.checkpoints.checkpoint import Checkpoints

from ..conftest import Gym


def test_nothing_is_saved_any_more(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[Path]()

    def delete(self: Checkpoints, step: int) -> None:
        tried.append(self._directory.parent)
        shutil.rmtree(tried[0])
        raise FileNotFoundError(tried[0])

    monkeypatch.setattr(Checkpoints, "_write", delete)

    with pytest.raises(RunError):
        gym.train(Plan(model="mlp", epochs=1, batch_size=512, validation="off"))

    (directory,) = tried
    assert not directory.exists()
