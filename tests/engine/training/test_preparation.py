"""The profile of a run's data, and advice that follows from it."""

import math
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import keras
import numpy as np
import pytest

from accel_engine.advice import find_troubles, read_recorded
from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunWriter, create, diagnostics
from accel_engine.training import preparation
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.core.deadline import Deadline
from accel_engine.training.preparation import Preparation
from accel_engine.training.recovery.out_of_memory import OutOfMemory
from accel_engine.training.reporting.run_reporter import RunReporter

from .conftest import MACHINE, Gym

PLAN = Plan(model="mlp", epochs=1, steps_per_epoch=4)


def test_a_run_has_a_profile_of_its_data(gym: Gym) -> None:
    found = diagnostics.read(gym.train(PLAN).directory).profile

    assert found is not None
    assert sum(found.classes) == found.of_examples == 1437
    assert found.inputs is not None
    assert (found.inputs.low, found.inputs.high) == pytest.approx((0.0, 1.0))  # after scaling


def test_a_leak_is_advised_on(gym: Gym, tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).random((200, 16)).astype(np.float32), np.arange(200) % 2
    np.savez(tmp_path / "data.npz", x_train=x, y_train=y, x_val=x[:50], y_val=y[:50])

    trained = gym.train(PLAN.replace(data=str(tmp_path / "data.npz"), model="tabular"))

    assert [
        finding.id for finding in find_troubles(read_recorded(trained.directory)) if finding.category == "quality"
    ] == ["leak"]


def test_a_stream_is_trained_without_a_profile(gym: Gym, tmp_path: Path) -> None:
    path = tmp_path / "stream.py"
    path.write_text(
        "import numpy as np\nimport tensorflow as tf\n\ndef load():\n"
        "    data = tf.data.Dataset.from_tensor_slices((np.ones((64, 4), 'float32'), np.zeros(64, "
        "'int32'))).batch(16)\n"
        "    return {'train': data, 'class_names': ['cat', 'dog']}\n"
    )

    trained = gym.train(PLAN.replace(data=f"{path}:load", model="mlp", task="classification"))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert diagnostics.read(trained.directory).profile is None


def test_data_that_cannot_be_profiled_is_trained(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(preparation, "profile_data", fail)

    assert gym.train(PLAN).ended.outcome is Outcome.FINISHED


@pytest.mark.parametrize(("of_chief", "repeated"), [(0.25, 0.25), (math.nan, 0.1)])
def test_all_workers_repeat_the_learning_rate_of_the_chief(home: Path, of_chief: float, repeated: float) -> None:
    """Only the chief's engine continues a session: those of its workers are started by it."""
    directory, optimizer = create(PLAN), keras.optimizers.SGD(0.1)
    with closing(RunWriter(directory)) as writer:
        reporter, memory = RunReporter(writer, 5), OutOfMemory(writer)
        prepared = Preparation(resolve(PLAN), reporter, CommandMailbox(), MACHINE, Deadline(), memory)
        prepared._sync = Mock(all_gather=lambda rate: np.array([[of_chief], [rate]]))
        prepared._repeat_rate(Mock(optimizer=optimizer))
    assert float(optimizer.learning_rate) == pytest.approx(repeated)
