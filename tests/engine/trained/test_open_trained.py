"""The model of a checkpoint is opened as the run trained it."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch
from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.plan.fields import USES
from accel_engine.run.store.database import RunDatabase
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.training.model_analysis import layer_table
from accel_engine.training.model_analysis.flops import FlopCount

from ..training.checkpoints.conftest import Parts, parts
from ..training.conftest import Gym

__all__ = ["parts"]

Make = Callable[..., Parts]

OWN = """
import keras

def compiled(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(),
                              keras.layers.Dense(classes, activation="softmax")])
    model.compile("sgd", "categorical_crossentropy")
    return model

class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def own_step(input_shape, classes):
    inputs = keras.Input(input_shape)
    outputs = keras.layers.Dense(classes, activation="softmax")(keras.layers.Flatten()(inputs))
    model = Own(inputs, outputs)
    model.compile("sgd", "categorical_crossentropy")
    return model
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN)
    return f"{tmp_path}/own.py"


def restored(run: Parts) -> TrainedModel:
    """Save the checkpoint of a step, and restore its model in a process that has built none."""
    run.checkpoints.save(3)
    keras.config.set_dtype_policy("float32")
    return open_trained(run.directory, data=None, checkpoint="3")


def examples(run: Parts) -> Batch:
    train = run.assembly.dataset.train
    assert isinstance(train, Split)
    return train.take(np.arange(8))


def test_a_restored_model_infers_as_the_run_does(parts: Make, random_model: str) -> None:
    run = parts(model=random_model, label_smoothing=0.1)
    found, raw = restored(run), examples(run)
    prepared, expected = found.prepare(raw), run.assembly.prepare(raw)
    np.testing.assert_allclose(prepared.inputs, expected.inputs, rtol=1e-6)
    np.testing.assert_array_equal(prepared.targets, expected.targets)
    assert prepared.weights is expected.weights
    outputs = run.assembly.model(expected.inputs, training=False)  # its dropout would change them
    np.testing.assert_allclose(found.outputs_of(raw.inputs), outputs, atol=1e-6)
    assert found.model.loss.label_smoothing == 0.1
    assert (found.task.name, found.outputs.shape) == ("classification", (None, 10))


def test_it_has_the_moving_averages_and_the_precision_of_the_run(parts: Make) -> None:
    run = parts(ema_momentum=0.9, precision="mixed_bfloat16")
    run.fill(1.0)
    for _, average in run.assembly.averages:
        average.assign(np.full(average.shape, 2.0))
    model = restored(run).model
    assert {float(value) for weight in model.weights for value in np.ravel(weight)} == {2.0}
    assert model.layers[-1].dtype_policy.name == run.assembly.model.layers[-1].dtype_policy.name
    assert model.layers[1].compute_dtype == "bfloat16"


def test_a_model_that_is_compiled_keeps_its_loss(parts: Make, own: str) -> None:
    found = restored(parts(model=f"{own}:compiled"))
    assert found.model.loss == "categorical_crossentropy"
    assert found.task.name == "classification"
    smoothed = restored(parts(model=f"{own}:compiled", label_smoothing=0.1))
    assert smoothed.model.loss.label_smoothing == 0.1


def test_a_model_with_its_own_step_keeps_its_task(parts: Make, own: str) -> None:
    run = parts(model=f"{own}:own_step")
    found = restored(run)
    assert found.task.name == run.assembly.task.name == "custom"
    assert found.model.loss == "categorical_crossentropy"


def write_layers(run: Parts, kind: str) -> None:
    """Record that the run was trained with a last layer of some class."""
    table = layer_table.tabulate(run.assembly.model, FlopCount(None, "not counted"))
    *others, last = table.layers
    run.reporter.run.write_diagnostics(replace(table, layers=(*others, replace(last, kind=kind))), 0)


def test_another_version_of_the_program_s_models_is_refused_but_not_of_the_user_s(parts: Make, own: str) -> None:
    run = parts()
    write_layers(run, "Dense")
    restored(run)
    write_layers(run, "Bilinear")
    words = f"run {run.directory.name} was trained with another version of model mlp: layer Bilinear is now Dense"
    with pytest.raises(RunError, match=words):
        restored(run)

    mine = parts(model=f"{own}:compiled")
    write_layers(mine, "Bilinear")
    change = "layer Bilinear is now Dense"
    assert restored(mine).notes == (f"the model has changed since the run was trained: {change}",)


def test_no_setting_of_the_training_makes_a_run_unusable(gym: Gym) -> None:
    directory = gym.train(Plan(model="mlp", epochs=1, batch_size=200)).directory
    images = np.arange(192, dtype=np.uint8).reshape(3, 8, 8, 1)
    expected = open_trained(directory).outputs_of(images).numpy()
    nonsense = {name: "nonsense" for name, use in USES.items() if use.only_training}
    with closing(RunDatabase(directory)) as connection:
        (text,) = connection.execute("SELECT value FROM meta WHERE key = 'plan'").fetchone()
        changed = {**json.loads(text), **nonsense, "strategy": "tpu", "initial_weights": "/gone.weights.h5"}
        connection.execute("UPDATE main.meta SET value = ? WHERE key = 'plan'", (json.dumps(changed),))
    moved = directory.rename(directory.with_name("moved"))
    keras.config.set_dtype_policy("float32")
    for data in ("", None):
        found = open_trained(moved, data=data)
        assert found.model.dtype_policy.name == "mixed_bfloat16"  # of the strategy, as the plan gives no precision
        np.testing.assert_allclose(found.outputs_of(images), expected, atol=0.05)


def test_a_file_without_trainable_weights_can_be_opened(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10, "softmax")])
    model.trainable = False
    model.save(tmp_path / "m.keras")
    found = open_trained(Plan(model=f"{tmp_path}/m.keras", data="digits"))
    assert (found.split, found.task.name, found.step) == ("validation", "classification", 0)
    assert found.notes == ("the model is not compiled: using sparse_categorical_crossentropy",)
