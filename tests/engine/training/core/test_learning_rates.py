"""The learning rate of each step is recorded as a series."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras.optimizers import schedules

from accel_engine.events import CommandAnswered, EpochEnded, LearningRateChanged, ModelBuilt, Outcome, Warned
from accel_engine.keras_support.optimizers import optimizer_of_steps
from accel_engine.plan import Plan

from ..conftest import Gym

PLAN = Plan(epochs=2, batch_size=256, last_batch="drop", validation="off", xla="off")
"""Ten steps."""

SCHEDULES = {
    "exponential": schedules.ExponentialDecay(0.1, decay_steps=3, decay_rate=0.5),
    "cosine": schedules.CosineDecay(0.0, decay_steps=6, warmup_target=0.2, warmup_steps=3),
    "piecewise": schedules.PiecewiseConstantDecay([2, 6], [0.3, 0.1, 0.01]),
}

MODELS = """
import keras
from keras import layers
from keras.optimizers import schedules

def softmax(input_shape, classes, optimizer):
    model = keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(classes, activation="softmax")])
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return model

def exponential(input_shape, classes):
    return softmax(input_shape, classes, keras.optimizers.SGD(schedules.ExponentialDecay(0.1, 3, 0.5)))

def cosine(input_shape, classes):
    return softmax(input_shape, classes,
                   keras.optimizers.Adam(schedules.CosineDecay(0.0, 6, warmup_target=0.2, warmup_steps=3)))

def piecewise(input_shape, classes):
    return softmax(input_shape, classes,
                   keras.optimizers.SGD(schedules.PiecewiseConstantDecay([2, 6], [0.3, 0.1, 0.01])))

def loss_scaled(input_shape, classes):
    inner = keras.optimizers.SGD(schedules.ExponentialDecay(0.1, 3, 0.5))
    return softmax(input_shape, classes, keras.optimizers.LossScaleOptimizer(inner))

def constant(input_shape, classes):
    return softmax(input_shape, classes, keras.optimizers.SGD(0.1))

class Own(keras.Model):
    def train_step(self, data):
        logs = super().train_step(data)
        self.optimizer.learning_rate.assign(self.optimizer.learning_rate * 0.5)
        return logs

def own(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Own(inputs, layers.Dense(classes, activation="softmax")(layers.Flatten()(inputs)))
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    return model

class Telling(Own):
    def train_step(self, data):
        return {"learning_rate": 0.25, **super().train_step(data)}

def telling(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Telling(inputs, layers.Dense(classes, activation="softmax")(layers.Flatten()(inputs)))
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    return model

class Adversarial(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.d_optimizer = keras.optimizers.Adam(1e-4)

    def train_step(self, data):
        return super().train_step(data)

def adversarial(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Adversarial(inputs=inputs, outputs=layers.Dense(classes, activation="softmax")(layers.Flatten()(inputs)))
    model.compile(loss="sparse_categorical_crossentropy")  # with an RMSprop that a GAN's steps would not use
    return model
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def rates(name: str, steps: int = 10) -> list[float]:
    return [float(SCHEDULES[name](step)) for step in range(steps)]


WAYS: dict[str, dict[str, Any]] = {
    "one device": {},
    "XLA": {"xla": "on"},
    "two replicas": {"strategy": "mirrored", "virtual_cpus": 2},
    "central storage": {"strategy": "central-storage", "virtual_cpus": 2},
    "micro-batches": {"micro_batches": 4},
}


ORDINARY = {*((name, "one device") for name in SCHEDULES), ("cosine", "two replicas")}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=() if (name, way) in ORDINARY else pytest.mark.campaign)
        for name in SCHEDULES
        for way in WAYS
    ],
)
def test_each_step_records_the_rate_of_the_schedule(gym: Gym, models: str, name: str, way: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:{name}", **WAYS[way]))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    np.testing.assert_allclose(trained.series["learning_rate"], rates(name), rtol=1e-6)
    assert trained.series["learning_rate"].dtype == np.float32
    assert "learning_rate" in trained.only(ModelBuilt).series
    (began,) = trained.all(LearningRateChanged)
    assert (began.step, began.schedule) == (0, type(SCHEDULES[name]).__name__)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "cosine" else pytest.mark.campaign) for name in SCHEDULES]
)
def test_a_schedule_continues_after_a_stop(gym: Gym, models: str, name: str) -> None:
    plan = PLAN.replace(model=f"{models}:{name}")
    gym.steps = 1
    stopped = gym.train(plan, at={3: [("stop",)]})
    assert stopped.ended.steps == 3

    resumed = gym.train(plan, run=stopped.directory)

    np.testing.assert_allclose(resumed.series["learning_rate"], rates(name), rtol=1e-6)


def test_the_rate_of_a_loss_scale_optimizer_is_recorded(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:loss_scaled"))

    np.testing.assert_allclose(trained.series["learning_rate"], rates("exponential"), rtol=1e-6)
    assert trained.only(LearningRateChanged).schedule == "ExponentialDecay"


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=() if way in {"one device", "two replicas"} else pytest.mark.campaign) for way in WAYS],
)
def test_a_constant_rate_changes_at_the_step_of_the_command(gym: Gym, models: str, way: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:constant", **WAYS[way]), at={4: [("learning_rate", 0.02)]})

    step = trained.all(LearningRateChanged)[1].step
    assert 0 < step < 10
    expected = np.float32([0.1] * step + [0.02] * (10 - step))
    np.testing.assert_array_equal(trained.series["learning_rate"], expected)
    assert {event.schedule for event in trained.all(LearningRateChanged)} == {""}


def test_a_scaled_rate_is_recorded(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:constant", strategy="mirrored", virtual_cpus=2, rate_scaling="linear")

    assert set(gym.train(plan).series["learning_rate"]) == {np.float32(0.2)}


def test_a_schedule_rejects_another_rate(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:exponential"), at={4: [("learning_rate", 0.02)]})

    assert trained.only(CommandAnswered).answer == (
        "it follows a schedule (ExponentialDecay), and can only be set without one"
    )
    np.testing.assert_allclose(trained.series["learning_rate"], rates("exponential"), rtol=1e-6)


def test_epoch_metrics_do_not_contain_the_rate(gym: Gym, models: str) -> None:
    stopped = gym.train(PLAN.replace(model=f"{models}:exponential"), at={4: [("stop",)]})
    trained = gym.train(PLAN.replace(model=f"{models}:exponential"), run=stopped.directory)

    for metrics in (trained.ended.metrics, *(event.metrics for event in trained.all(EpochEnded))):
        assert set(metrics) == {"loss", "accuracy"}


def test_a_custom_train_step_may_change_the_rate(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:own"))

    np.testing.assert_array_equal(trained.series["learning_rate"], 0.5 ** np.arange(1, 11))


def test_a_custom_train_step_may_return_the_rate(gym: Gym, models: str) -> None:
    assert set(gym.train(PLAN.replace(model=f"{models}:telling")).series["learning_rate"]) == {0.25}


def test_several_optimizers_have_no_single_rate(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:adversarial"), at={4: [("learning_rate", 0.02)]})

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert "learning_rate" not in trained.series
    assert trained.all(LearningRateChanged) == []
    assert "several optimizers" in trained.only(CommandAnswered).answer
    assert not trained.all(Warned)


def test_every_keras_optimizer_has_a_rate() -> None:
    from accel_engine.keras_support import optimizers

    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion"):
        optimizer = getattr(keras.optimizers, name)(0.25)
        assert optimizers.has_constant_rate(optimizer)
        assert float(optimizers.read_rate(optimizer)) == 0.25


@pytest.mark.parametrize("held", [lambda own: own, lambda own: [own], lambda own: {"d": (own,)}])
def test_a_model_with_its_own_optimizers_has_no_rate(held: Any) -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert optimizer_of_steps(model, custom_step=True) is model.optimizer
    model.others = held(keras.optimizers.Adam())
    assert optimizer_of_steps(model, custom_step=True) is None
    assert optimizer_of_steps(model, custom_step=False) is model.optimizer
