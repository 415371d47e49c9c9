"""Validation of a model during training."""

import importlib
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.events import Outcome, Validated
from accel_engine.plan import Plan
from accel_engine.requests.evaluate import EvaluationOptions, EvaluationRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.trained.evaluation.evaluate import evaluate

from ..conftest import Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop", optimizer="sgd", learning_rate=0.05)
"""Ten steps."""


def test_validation_counts_every_example_once(gym: Gym) -> None:
    plan = PLAN.replace(data="synthetic:6x6x1:3:700", epochs=1, batch_size=100)
    trained = gym.train(plan)
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    held_out = data.load(plan.data, plan.data_options).validation
    assert held_out is not None
    model = keras.models.load_model(trained.directory / "model.keras")
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    loss, accuracy = model.evaluate(held_out.inputs / 255, held_out.targets, verbose=0)
    for metrics in (trained.only(Validated).metrics, shared.only(Validated).metrics):
        assert metrics["loss"] == pytest.approx(loss, rel=1e-4)
        assert metrics["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def test_validation_end_validates_once(gym: Gym) -> None:
    assert [event.step for event in gym.train(PLAN.replace(validation="end")).all(Validated)] == [10]
    assert gym.train(PLAN.replace(validation="off")).all(Validated) == []


FUNCTIONS = """
import keras
import numpy as np
from keras import layers

def _examples(count, *shape):
    values = np.random.default_rng(count).normal(size=(count, *shape)).astype("float32")
    return values, values.reshape(count, -1).sum(axis=1, keepdims=True)

def rows():
    return {"train": _examples(64, 6), "validation": _examples(40, 6)}

def series():
    return {"train": _examples(64, 5, 2), "validation": _examples(40, 5, 2)}

def _compiled(inputs, hidden, **options):
    model = keras.Sequential([inputs, hidden, layers.Dense(1)])
    model.compile("sgd", **{"loss": "mse", **options})
    return model

def summed():
    return _compiled(keras.Input((6,)), layers.Dense(4), loss=keras.losses.MeanSquaredError(reduction="sum"))

@keras.saving.register_keras_serializable()
def largest(y_true, y_pred):
    return keras.ops.max(keras.ops.abs(y_true - y_pred))

def of_batches():
    return _compiled(keras.Input((6,)), layers.Dense(4), loss=largest, metrics=[largest])

def fixed():
    return _compiled(keras.Input(batch_shape=(16, 6)), layers.Dense(4))

def stateful():
    return _compiled(keras.Input(batch_shape=(16, 5, 2)), layers.LSTM(4, stateful=True))
"""


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    """A file with models and data."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    return tmp_path / "functions.py"


def plan_of(functions: Path, model: str, **changes: object) -> Plan:
    source = "series" if model == "stateful" else "rows"
    plan = Plan(model=f"{functions}:{model}", data=f"{functions}:{source}", batch_size=16, epochs=1, shuffle="off")
    return plan.replace(**changes)


@pytest.mark.parametrize("model", [pytest.param("summed", marks=pytest.mark.campaign), "of_batches"])
def test_a_loss_that_depends_on_the_batch_is_that_of_the_plans_batches(
    gym: Gym, functions: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = gym.train(plan_of(functions, model))

    monkeypatch.syspath_prepend(functions.parent)
    own = importlib.import_module("functions")
    expected = keras.models.load_model(trained.directory / "model.keras")
    results = expected.evaluate(*own.rows()["validation"], batch_size=16, verbose=0, return_dict=True)
    sys.modules.pop("functions")
    measured = trained.only(Validated).metrics
    assert {name: measured[name] for name in results} == pytest.approx(results, rel=1e-5)


@pytest.mark.parametrize("model", ["fixed", "stateful"])
def test_a_model_with_a_fixed_batch_is_validated_on_every_example(gym: Gym, functions: Path, model: str) -> None:
    """40 examples are two and a half batches of 16."""
    trained = gym.train(plan_of(functions, model))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    loss = trained.only(Validated).metrics["loss"]
    assert np.isfinite(loss)
    if model == "fixed":
        first, second = keras.models.load_model(trained.directory / "model.keras").layers
        x = np.random.default_rng(40).normal(size=(40, 6)).astype("float32")
        outputs = (x @ first.get_weights()[0] + first.get_weights()[1]) @ second.get_weights()[0]
        error = outputs + second.get_weights()[1] - x.sum(axis=1, keepdims=True)
        assert loss == pytest.approx(float((error**2).mean()), rel=1e-5)
    options = EvaluationOptions(split="validation", resamples=100)
    found = evaluate(EvaluationRequest((ModelReference(trained.directory),), options))
    assert found.examples == 40


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"batch_size": 8}, "takes batches of 16 only: use 16"),
        ({"batch_size": 16, "strategy": "mirrored", "virtual_cpus": 2}, "takes batches of 16 only: use 32"),
        ({"batch_size": 16, "data": "{}:few"}, "takes batches of 16 only; there are 9 examples"),
        ({"batch_size": 16, "data": "{}:uneven"}, "takes batches of 16 only, and the last one has 13: use drop"),
    ],
)
def test_steps_of_other_sizes_are_refused_before_they_are_taken(
    gym: Gym, functions: Path, changes: dict[str, object], reason: str
) -> None:
    functions.write_text(
        FUNCTIONS + "\ndef uneven():\n    return _examples(68, 6)\ndef few():\n    return _examples(10, 6)\n"
    )
    data = {"data": str(changes["data"]).format(functions)} if "data" in changes else {}
    ended = gym.train(plan_of(functions, "fixed", **{**changes, **data})).ended

    assert ended.outcome is Outcome.FAILED
    assert reason in ended.reason
    assert ended.steps == 0
