"""Validating a checkpoint again gives the same report as the engine."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.requests.revalidate import Revalidation, RevalidationRequest
from accel_engine.run import RunWriter, create
from accel_engine.run.diagnostics import ClassificationReport, read
from accel_engine.run.diagnostics.views import Image
from accel_engine.run.store.database import RunDatabase
from accel_engine.trained import split_batches
from accel_engine.trained.diagnose import revalidate

from ..training.conftest import Gym
from ..training.core.streams import ROWS, Recorded, dataset

PLAN = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")


def progress(told: list[object]) -> list[tuple[int, int]]:
    return [(part.done, part.of) for part in told if isinstance(part, ExamplesDone)]


@pytest.mark.parametrize("validation", ["epoch", "off"])
def test_the_report_equals_the_engines(gym: Gym, monkeypatch: pytest.MonkeyPatch, validation: str) -> None:
    monkeypatch.setattr(split_batches, "PROGRESS_SECONDS", 0.0)
    expected = read(gym.train_once(PLAN).directory).validation
    trained = gym.train(PLAN.replace(validation=validation))
    with closing(RunDatabase(trained.directory)) as connection:
        connection.execute("DELETE FROM main.diagnostics")
    told: list[object] = []
    request = RevalidationRequest(trained.directory)
    assert revalidate(request, told.append) == Revalidation(14, ())
    kept = read(trained.directory)
    assert expected is not None
    assert kept.validation is not None
    assert kept.steps == {"validation": 14}
    assert progress(told) == [(256, 360), (360, 360)]
    (found,), (wanted,) = kept.validation.outputs, expected.outputs
    assert isinstance(found, ClassificationReport)
    assert isinstance(wanted, ClassificationReport)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    for judged, same in zip(found.worst, wanted.worst, strict=True):
        assert (judged.row, judged.predicted) == (same.row, same.predicted)
        assert judged.loss == pytest.approx(same.loss, abs=1e-5)
        assert isinstance(judged.input, Image)
        assert isinstance(same.input, Image)
        np.testing.assert_array_equal(judged.input.pixels, same.input.pixels)


MIXING = """
import keras

class Mixing(keras.layers.Layer):
    def call(self, x):
        return x - keras.ops.mean(x, axis=0)

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes), Mixing(),
                             keras.layers.Softmax()])
"""


def test_a_layer_that_mixes_the_batch_sees_the_batches_of_the_validation(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(MIXING)
    trained = gym.train(PLAN.replace(model=f"{tmp_path / 'own.py'}:build", batch_size=9))
    wanted = read(trained.directory).validation
    revalidate(RevalidationRequest(trained.directory))
    found = read(trained.directory).validation
    assert wanted is not None
    assert found is not None
    for judged, same in zip(found.outputs[0].worst, wanted.outputs[0].worst, strict=True):
        assert (judged.row, judged.loss) == (same.row, pytest.approx(same.loss, abs=1e-5))


NET = """
import keras

def build():
    layers = keras.Input((6,)), keras.layers.Dropout(0.5), keras.layers.Dense(3, activation="softmax")
    model = keras.Sequential(layers)
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""


def test_a_stream_is_validated_again_from_its_first_batch(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(NET)
    stream = Recorded()
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, stream))
    monkeypatch.setattr(split_batches, "PROGRESS_SECONDS", 0.0)
    trained = gym.train(Plan(model=f"{tmp_path / 'net.py'}:build", epochs=1, batch_size=100, xla="off"))
    expected = read(trained.directory).validation
    stream.reads.clear()
    told: list[object] = []

    revalidate(RevalidationRequest(trained.directory), told.append)

    assert stream.reads == [(0, 0)]
    assert progress(told) == [(done, 0) for done in (32, 64, 96, 128, 160, 192, 200)]
    found = read(trained.directory).validation
    assert expected is not None
    assert found is not None
    np.testing.assert_array_equal(found.outputs[0].counts, expected.outputs[0].counts)
    assert found.outputs[0].counts.sum() == found.outputs[0].examples == 200


def test_an_active_run_is_rejected(gym: Gym) -> None:
    directory = create(PLAN)
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        with pytest.raises(AccelError, match="is active: its own engine can validate it"):
            revalidate(RevalidationRequest(directory))


def test_a_model_with_unknown_outputs_is_rejected(gym: Gym, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import keras\n\n"
        "class Own(keras.Sequential):\n"
        "    def train_step(self, data):\n"
        "        return super().train_step(data)\n\n"
        "def build(input_shape, classes):\n"
        "    model = Own([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(1)])\n"
        '    model.compile("sgd", "mse")\n'
        "    return model\n"
    )
    trained = gym.train(PLAN.replace(model=f"{file}:build", data="synthetic:6x6x1:3:300", batch_size=50))
    assert not trained.ended.reason, trained.ended.reason
    with pytest.raises(AccelError, match="custom train_step"):
        revalidate(RevalidationRequest(trained.directory))
