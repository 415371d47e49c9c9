"""A regression's MAE, RMSE and R² are over all its examples, in the unit of the targets."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.events import ModelBuilt, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.plan.task_choices import ALWAYS_MEASURED
from accel_engine.trained.open_trained import open_trained

from ....trained.evaluation.test_evaluate import evaluated, values
from ...conftest import Gym

REGRESSION = ALWAYS_MEASURED["regression"]


def houses(path: Path) -> Plan:
    """Prices near 1.2e8, which differ by hundreds."""
    rng = np.random.default_rng(5)
    rooms, size = rng.integers(1, 9, 400), rng.normal(90, 20, 400)
    prices = (1.2e8 + 400 * rooms + 5 * size + rng.normal(0, 80, 400)).astype(int)
    rows = "\n".join(f"{a},{b:.2f},{c}" for a, b, c in zip(rooms, size, prices, strict=True))
    path.write_text(f"rooms,size,price\n{rows}\n")
    return Plan(model="tabular", data=str(path), target=("price",), epochs=1, batch_size=32)


def loads(path: Path) -> Plan:
    """A forecast of two series of different units."""
    hours = np.arange(500)
    power, heat = 4000 + 900 * np.sin(hours / 4), 20 + 3 * np.cos(hours / 5)
    rows = "\n".join(f"{hour},{a:.2f},{b:.3f}" for hour, a, b in zip(hours, power, heat, strict=True))
    path.write_text(f"hour,power,heat\n{rows}\n")
    options = {"time": "hour", "target": ("power", "heat"), "window": 12, "horizon": 3}
    return Plan(model="mlp", data=str(path), epochs=1, batch_size=32, **options)


COMPILED = """
import keras

def cubed(y, p):
    return abs(y - p) ** 3

def above(y, p):
    return keras.ops.cast(y > 4000, p.dtype)

def compiled(input_shape):
    model = keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(1)])
    measured = ["mae", keras.metrics.RootMeanSquaredError(name="rmse"), "mean_absolute_percentage_error", cubed, above]
    model.compile("sgd", "mean_squared_error", metrics=["mean_absolute_error", *measured], weighted_metrics=["mse"])
    return model
"""


@pytest.mark.parametrize("is_precise", [pytest.param(False, marks=pytest.mark.campaign), True])
def test_the_metrics_of_a_compiled_model_are_in_the_unit_of_the_targets(is_precise, gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(COMPILED)
    make = houses if is_precise else loads
    plan = make(tmp_path / "data.csv").replace(model=f"{tmp_path / 'own.py'}:compiled")
    trained = gym.train(plan if is_precise else plan.replace(target=("power",), horizon=1))
    source = open_trained(trained.directory, split="validation", checkpoint="last")
    assert isinstance(source.examples, Split)
    units = source.dataset.target_scaling
    assert units is not None
    standardized = np.asarray(source.examples.take(np.arange(len(source.examples))).targets, float).reshape(-1)
    outputs = source.model.predict(source.examples.inputs, verbose=0).astype(float).reshape(-1)
    true, predicted = units.restore(standardized), units.restore(outputs)
    errors = np.abs(predicted - true)
    # Differences from the mean, where float32 would lose the digits of the targets: they are hundreds.
    above = 0.0 if is_precise else float((true > 4000).mean())
    expected = {
        "mean_absolute_error": errors.mean(),
        "mae": errors.mean(),
        "root_mean_squared_error": np.sqrt((errors**2).mean()),
        "rmse": np.sqrt((errors**2).mean()),
        "mse": (errors**2).mean(),
        "mean_absolute_percentage_error": 100 * (errors / np.abs(true)).mean(),
        "cubed": (errors**3).mean(),
        "above": above,
    }
    measured, own = trained.only(Validated).metrics, values(evaluated(trained.directory))
    for found in (measured, own):
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=2e-3)
    notes = [event.message for event in trained.all(Warned) if "differences from the mean" in event.message]
    assert bool(notes) == is_precise


@pytest.mark.parametrize("make", [pytest.param(houses, marks=pytest.mark.campaign), loads])
def test_they_are_measured_without_being_asked_in_the_unit_of_the_targets(make, gym: Gym, tmp_path: Path) -> None:
    trained = gym.train(make(tmp_path / "data.csv"))
    source = open_trained(trained.directory, split="validation", checkpoint="last")
    assert isinstance(source.examples, Split)
    units = source.dataset.target_scaling
    true = np.asarray(source.examples.take(np.arange(len(source.examples))).targets, float)
    predicted = source.model.predict(source.examples.inputs, verbose=0).astype(float).reshape(true.shape)
    if units is not None:
        true, predicted = units.restore(true), units.restore(predicted)
    true, predicted = (each.reshape(-1, true.shape[-1] if true.ndim > 1 else 1) for each in (true, predicted))
    errors, spread = predicted - true, ((true - true.mean(0)) ** 2).sum(0)
    expected = {
        "mean_absolute_error": np.abs(errors).mean(),
        "root_mean_squared_error": np.sqrt((errors**2).mean()),
        "r2_score": (1 - (errors**2).sum(0) / spread).mean(),
    }
    assert tuple(expected) == REGRESSION
    measured, own = trained.only(Validated), evaluated(trained.directory)
    for found in (measured.metrics, values(own)):
        assert {name: found[name] for name in REGRESSION} == pytest.approx(expected, rel=2e-3)
    assert set(REGRESSION) <= set(trained.only(ModelBuilt).series)
    assert set(measured.baseline) == {*REGRESSION}
    assert measured.baseline == pytest.approx(own.models[0].baseline)
