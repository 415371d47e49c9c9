"""Training custom models, and explaining their errors."""

import math
from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import LearningRateChanged, ModelBuilt, Outcome, Validated, Warned
from accel_engine.plan import Plan

from .conftest import Gym

PLAN = Plan(epochs=2, batch_size=256)
"""Twelve steps, two of them of 157 examples."""


OWN_MODELS = """
import keras

def softmax(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(classes, activation="softmax")])

def compiled(input_shape, classes):
    model = softmax(input_shape, classes)
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss="categorical_crossentropy",
                  metrics=[keras.metrics.TopKCategoricalAccuracy(3, name="top3")])
    return model

class Measured(keras.Sequential):
    def compute_metrics(self, x, y, y_pred, sample_weight):
        return super().compute_metrics(x, y, y_pred, sample_weight)

class Largest(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="largest")
        self.value = self.add_weight(shape=(), initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.value.assign(keras.ops.maximum(self.value, keras.ops.max(y_pred)))

    def result(self):
        return self.value

def largest(input_shape, classes):
    model = Measured(softmax(input_shape, classes).layers)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=[Largest()])
    return model

class Halved(keras.Model):
    def __init__(self):
        super().__init__()
        self.flat = keras.layers.Flatten()
        self.dense = keras.layers.Dense(10)

    def call(self, x):
        return self.dense(self.flat(x))

    def train_step(self, batch):
        logs = super().train_step(batch)
        return {"loss": logs["loss"] * 0.0 + 7.0, "mine": logs["loss"], "Top@1": 1.0, "count": 2.0}

def own_step():
    model = Halved()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def broken():
    raise RuntimeError("no such weather")

class Silent(Halved):
    def train_step(self, batch):
        return {"mine": super().train_step(batch)["mine"]}

def silent_step():
    model = Silent()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def penalised(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(classes, kernel_regularizer=keras.regularizers.L2(0.1))])

class Weather(keras.layers.Layer):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def call(self, x, training=False):
        if training:
            raise self.error
        return x

def exiting(input_shape, classes):
    return keras.Sequential([softmax(input_shape, classes), Weather(SystemExit(7))])

def raising(input_shape, classes):
    return keras.Sequential([softmax(input_shape, classes), Weather(ValueError("it rains"))])
"""


@pytest.fixture
def own_models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(OWN_MODELS)
    return str(path)


def test_a_compiled_model_keeps_its_loss_metrics_and_optimizer(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:compiled"))

    built = trained.only(ModelBuilt)
    assert (built.optimizer, built.loss) == ("SGD", "categorical_crossentropy")
    assert trained.all(LearningRateChanged)[0].learning_rate == 0.5
    metrics = trained.all(Validated)[-1].metrics
    assert 0.0 < metrics["accuracy"] <= metrics["top3"] <= 1.0
    assert not trained.all(Warned)


def test_replicas_record_a_models_metrics_as_one_device_does(gym: Gym, own_models: str) -> None:
    plan = PLAN.replace(model=f"{own_models}:compiled", last_batch="drop")
    alone, shared = gym.train(plan), gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    assert set(shared.series) == {"loss", "top3", "accuracy", "learning_rate"}
    for name, values in alone.series.items():
        np.testing.assert_allclose(shared.series[name], values, atol=1e-5, err_msg=name)
    for ours, theirs in zip(shared.all(Validated), alone.all(Validated), strict=True):
        assert ours.metrics == pytest.approx(theirs.metrics, abs=1e-5)
    assert not shared.all(Warned)


def test_a_metric_that_is_no_sum_is_recorded_with_a_warning(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:largest"))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert 0 < trained.series["largest"].min() <= trained.series["largest"].max() <= 1
    (warned,) = trained.all(Warned)
    assert "metric largest does not keep sums" in warned.message


def test_a_plans_optimizer_replaces_a_compiled_models_with_a_warning(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:compiled", optimizer="adam"))

    assert trained.only(ModelBuilt).optimizer == "Adam"
    assert "replaces the model's SGD" in trained.all(Warned)[0].message


@pytest.mark.parametrize("replicas", [2, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_custom_train_step_is_used(gym: Gym, own_models: str, replicas: int) -> None:
    strategy = "mirrored" if replicas == 2 else "default"
    trained = gym.train(PLAN.replace(model=f"{own_models}:own_step", strategy=strategy, virtual_cpus=replicas))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert set(trained.series["loss"]) == {7.0}
    assert set(trained.series) == {"loss", "mine", "top_1", "metric_count", "learning_rate"}
    assert trained.series["mine"][-1] < trained.series["mine"][0]
    assert math.isfinite(trained.all(Validated)[-1].metrics["loss"])


def test_a_train_step_without_a_loss_fails_with_the_reason(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:silent_step"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "train_step returns mine but no loss" in trained.ended.reason


def test_a_model_whose_function_raises_fails_before_training(
    gym: Gym, own_models: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:broken"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "no such weather" in trained.ended.reason
    assert trained.series == {}
    written = capsys.readouterr().err
    assert written.count("Traceback") == 1
    assert "ModelError" not in written
    assert "in broken" in written


def test_a_layer_that_exits_fails_the_run(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:exiting"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "SystemExit: 7" in trained.ended.reason


def test_an_error_in_a_layer_is_reported_without_its_traceback(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:raising"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "it rains" in trained.ended.reason
    assert "models.py, line" in trained.ended.reason
    assert "in user code" not in trained.ended.reason


def test_regularization_counts_once_in_validation(gym: Gym, own_models: str) -> None:
    plan = PLAN.replace(model=f"{own_models}:penalised", epochs=1, optimizer="sgd", learning_rate=1e-9)
    plan = plan.replace(last_batch="drop")  # of whose examples two replicas leave one out

    alone = gym.train(plan)
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    assert shared.ended.metrics["validation_loss"] == pytest.approx(alone.ended.metrics["validation_loss"], rel=1e-5)
    np.testing.assert_allclose(shared.series["loss"], alone.series["loss"], rtol=1e-5)
