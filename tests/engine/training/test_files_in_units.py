"""A ``model.keras`` of standardised targets answers in their unit, and is evaluated and trained on as its run was."""

from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine.events import Validated
from accel_engine.models.saved_model import custom_objects
from accel_engine.plan import Plan
from accel_engine.run.directory.run_paths import MODEL

from ..trained.evaluation.test_evaluate import evaluated, values
from .conftest import Gym
from .core.recipe.test_regression_metrics import houses, loads

MODELS = """
import keras

class Own(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.last = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, x):
        return self.last(x)

def build(input_shape):
    return Own()
"""


def prices(path: Path) -> Plan:
    """Arrays with prices near 1.2e8, which differ by units."""
    inputs = np.random.default_rng(1).normal(size=(200, 4))
    np.savez(path, x_train=inputs.astype(np.float32), y_train=1.2e8 + inputs @ [1.0, 2.0, 3.0, 4.0])
    return Plan(model="mlp", data=str(path), task="regression", epochs=1, batch_size=32)


def test_arrays_answer_in_the_unit_and_can_be_used_as_their_run(gym: Gym, tmp_path: Path) -> None:
    plan = prices(tmp_path / "data.npz")
    trained = gym.train(plan)
    data, reached = np.load(tmp_path / "data.npz"), trained.only(Validated).metrics
    model = keras.models.load_model(trained.directory / MODEL)
    predicted, true = model.predict(data["x_train"], verbose=0)[:, 0], data["y_train"]
    assert predicted.dtype == np.float64
    assert abs(predicted.mean() - 1.2e8) < 20 < np.abs(predicted).min()
    file = plan.replace(model=str(trained.directory / MODEL), initial_weights="")
    own, of_file = evaluated(trained.directory), evaluated(file)
    assert values(of_file) == pytest.approx(values(own), rel=1e-4)
    assert values(of_file)["mean_absolute_error"] == pytest.approx(reached["mean_absolute_error"], rel=1e-4)
    other = tmp_path / "other.npz"  # whose own mean and deviation are others
    np.savez(other, x_train=data["x_train"][:50], y_train=true[:50])
    found = values(evaluated(file.replace(data=str(other), split="none"), split="training"))
    assert found["mean_absolute_error"] == pytest.approx(np.abs(predicted - true)[:50].mean(), rel=1e-4)
    again = gym.train(file.replace(learning_rate=1e-9)).only(Validated).metrics
    assert again["mean_absolute_error"] == pytest.approx(reached["mean_absolute_error"], rel=1e-3)
    weights = gym.train(plan.replace(initial_weights=file.model, learning_rate=1e-9)).only(Validated).metrics
    assert weights["loss"] == pytest.approx(reached["loss"], rel=1e-3)


def test_a_class_of_its_own_answers_in_the_unit(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(MODELS)
    trained = gym.train(prices(tmp_path / "data.npz").replace(model=f"{tmp_path / 'own.py'}:build"))
    objects = custom_objects(str(tmp_path / "own.py"))
    model = keras.models.load_model(trained.directory / MODEL, custom_objects=objects)
    predicted = model.predict(np.zeros((1, 4), np.float32), verbose=0)
    assert abs(predicted.item() - 1.2e8) < 20


def test_a_series_is_trained_on_as_it_was(gym: Gym, tmp_path: Path) -> None:
    plan = loads(tmp_path / "data.csv")
    trained = gym.train(plan)
    again = gym.train(plan.replace(model=str(trained.directory / MODEL), learning_rate=1e-9))
    assert again.only(Validated).metrics == pytest.approx(trained.only(Validated).metrics, rel=1e-3)


def test_a_table_is_evaluated_with_its_digits(gym: Gym, tmp_path: Path) -> None:
    plan = houses(tmp_path / "data.csv")
    trained = gym.train(plan)
    found = values(evaluated(plan.replace(model=str(trained.directory / MODEL))))
    assert found == pytest.approx(values(evaluated(trained.directory)), rel=1e-3)
