"""A run whose directory is deleted while its engine saves a checkpoint."""

import shutil
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.run.directory.run_paths import MODEL, checkpoint_steps
from accel_engine.training.checkpoints.checkpoint import Checkpoints

from ..conftest import Gym


def test_the_checkpoint_is_saved_in_the_directory_of_the_copy(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    write, deleted = Checkpoints._write, list[Path]()

    def delete_first(self: Checkpoints, step: int) -> None:
        if not deleted:
            deleted.append(self._directory.parent)
            shutil.rmtree(deleted[0])
            raise FileNotFoundError(deleted[0])
        write(self, step)

    monkeypatch.setattr(Checkpoints, "_write", delete_first)

    with pytest.raises(RunError, match="no run in"):  # where the gym reads it
        gym.train(Plan(model="mlp", epochs=1, batch_size=512, validation="off"))

    (directory,) = deleted
    saved = directory.with_name(f"{directory.name}-saved")
    assert checkpoint_steps(saved) == [3]
    assert (saved / MODEL).is_file()
    assert not directory.exists()
