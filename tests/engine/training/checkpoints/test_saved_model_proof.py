"""What Keras loses when it saves a model is said at the end of a run."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from accel_engine.events import Warned
from accel_engine.private_names import keras_names
from accel_engine.run.directory.run_paths import MODEL
from accel_engine.training.checkpoints import run_saver, saved_model_proof
from accel_engine.training.checkpoints.saved_model_proof import saving_faults

MODELS = """
import keras

@keras.saving.register_keras_serializable(package="forgetful")
class Forgetful(keras.layers.Layer):
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs):
        return inputs * self.factor

    def get_config(self):
        return super().get_config()

class Unknown(keras.layers.Layer):
    def call(self, inputs):
        return 2 * inputs

def of(layer, loss="mse"):
    model = keras.Sequential([keras.Input((6,)), layer, keras.layers.Dense(3), keras.layers.BatchNormalization()])
    model.compile("adam", loss)
    return model

def plain():
    return of(keras.layers.Dense(4))

def huber():
    return of(keras.layers.Dense(4), keras.losses.Huber(delta=0.1))

def forgetful():
    return of(Forgetful(3.0))

def unknown():
    return of(Unknown())

@keras.saving.register_keras_serializable(package="forgetful")
class OwnLoss(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1)

@keras.saving.register_keras_serializable(package="forgetful")
class OwnPenalty(keras.regularizers.Regularizer):
    def __call__(self, weights):
        return 0.01 * keras.ops.sum(weights)

    def get_config(self):
        return {}

def own_loss():
    return of(keras.layers.Dense(4), OwnLoss())

def own_part():
    return of(keras.layers.Dense(4, kernel_regularizer=OwnPenalty()))

def noisy():
    return of(keras.layers.Lambda(lambda x: x + keras.random.normal((6,))))
"""

DATA = """
import numpy as np

def load():
    x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    return x, x[:, :3]
"""


@pytest.fixture
def saved(tmp_path: Path, parts: Callable[..., object]) -> Callable[..., object]:
    (tmp_path / "net.py").write_text(MODELS)
    (tmp_path / "table.py").write_text(DATA)

    def make(model: str, **fields: object) -> object:
        made = parts(model=f"{tmp_path / 'net.py'}:{model}", data=f"{tmp_path / 'table.py'}:load", **fields)
        made.saver.save_model()
        return made

    return make


@pytest.mark.parametrize("model", ["plain", "huber"])
def test_a_model_that_loads_as_it_was_saved_is_not_mentioned(saved, model) -> None:
    made = saved(model, ema_momentum=0.9 if model == "plain" else None)
    with run_saver.averages_as_weights(made.assembly):
        assert saving_faults(made.assembly, made.directory / MODEL) == ""


def test_a_layer_that_forgets_an_argument(saved) -> None:
    made = saved("forgetful")
    assert "its outputs differ by" in saving_faults(made.assembly, made.directory / MODEL)
    assert "get_config" in saving_faults(made.assembly, made.directory / MODEL)


def test_a_loss_that_keras_forgets(saved, parts) -> None:
    with patch.object(keras_names, "_lost_arguments", lambda _: {}):
        made = saved("huber")
    fault = saving_faults(made.assembly, made.directory / MODEL)
    assert "loaded again, its loss of 8 examples is" in fault


def test_weights_that_are_not_loaded(saved) -> None:
    made = saved("plain")
    made.assembly.model.weights[0].assign(np.zeros((6, 4)))
    assert "other weights" in saving_faults(made.assembly, made.directory / MODEL)


def test_a_class_that_keras_does_not_find(saved) -> None:
    made = saved("unknown")
    assert "class or function Unknown is not known" in saving_faults(made.assembly, made.directory / MODEL)
    made.saver.save_model(prove=True)
    assert not made.events(Warned)  # loading it says so


def test_what_draws_random_numbers_cannot_be_compared(saved) -> None:
    made = saved("noisy", unsafe_load="on")
    assert saving_faults(made.assembly, made.directory / MODEL) == ""


def test_a_model_of_keras_classes_is_loaded_again_after_a_run_of_some_length(saved, monkeypatch) -> None:
    made = saved("plain")
    monkeypatch.setattr(run_saver, "saving_faults", lambda *_, **__: "another model")
    made.saver.save_model(prove=True)
    assert not made.events(Warned)
    monkeypatch.setattr(run_saver, "PROVEN_AFTER", 0.0)
    made.saver.save_model(prove=True)
    assert [each.message for each in made.events(Warned)] == ["model.keras: another model"]


@pytest.mark.parametrize(
    ("model", "has_own"), [("huber", False), ("forgetful", True), ("own_loss", True), ("own_part", True)]
)
def test_classes_of_the_users_own_are_found_in_the_file(saved, model, has_own) -> None:
    assert saved_model_proof.has_own_classes(saved(model).directory / MODEL) is has_own


def test_a_short_run_of_the_users_own_classes_is_told_what_they_forget(saved, monkeypatch) -> None:
    made = saved("forgetful")
    made.saver.save_model(prove=True)
    (warning,) = made.events(Warned)
    assert warning.message.startswith("model.keras: loaded again, its outputs differ by 0.67 of the largest one")
    monkeypatch.setattr(saved_model_proof, "available_memory", lambda: 1000)
    made.saver.save_model(prove=True)
    assert len(made.events(Warned)) == 1
