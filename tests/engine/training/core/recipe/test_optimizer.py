"""Optimizers, schedules, clipping, averages and losses of a plan, compared with Keras on the same batches."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.events import ModelBuilt, Outcome, Validated, Warned
from accel_engine.models.build import build
from accel_engine.plan import USES, Plan, task_choices
from accel_engine.plan.step_counts import count_steps
from accel_engine.trained.open_trained import open_trained
from accel_engine.training.core.batches import epoch_orders
from accel_engine.training.core.compiled_model import describe_data

from ...conftest import Gym

STEPS = 12

PLAN = Plan(model="linear", batch_size=64, epochs=1, steps_per_epoch=STEPS, learning_rate=0.05, validation="off")

schedules = keras.optimizers.schedules


def joined(first: Any, steps: int, second: Any) -> Any:
    class Joined(schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> Any:
            step = keras.ops.cast(step, "float32")
            return keras.ops.where(step < steps, first(step), second(keras.ops.maximum(step - steps, 0)))

        def get_config(self) -> dict[str, Any]:
            return {}

    return Joined()


OPTIMIZERS: dict[str, tuple[dict[str, Any], Callable[[], keras.Optimizer]]] = {
    "momentum": (
        {"optimizer": "sgd", "momentum": 0.9, "nesterov": "on"},
        lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    ),
    "weight decay": (
        {"optimizer": "adamw", "weight_decay": 0.1},
        lambda: keras.optimizers.AdamW(0.05, weight_decay=0.1),
    ),
    "lamb": ({"optimizer": "lamb"}, lambda: keras.optimizers.Lamb(0.05)),
    "clip norm": ({"clip_norm": 0.01}, lambda: keras.optimizers.Adam(0.05, clipnorm=0.01)),
    "global clip norm": (
        {"optimizer": "sgd", "global_clip_norm": 0.5},
        lambda: keras.optimizers.SGD(0.05, global_clipnorm=0.5),
    ),
    "clip value": ({"optimizer": "sgd", "clip_value": 0.01}, lambda: keras.optimizers.SGD(0.05, clipvalue=0.01)),
    "cosine with warm-up": (
        {"schedule": "cosine", "warmup": 0.25, "final_rate": 0.1},
        lambda: keras.optimizers.Adam(schedules.CosineDecay(0.0, 9, 0.1, warmup_target=0.05, warmup_steps=3)),
    ),
    "linear with warm-up": (
        {"schedule": "linear", "warmup": 3},
        lambda: keras.optimizers.Adam(
            joined(schedules.PolynomialDecay(0.0, 3, 0.05), 3, schedules.PolynomialDecay(0.05, 9, 0.0))
        ),
    ),
    "exponential": (
        {"schedule": "exponential"},
        lambda: keras.optimizers.Adam(schedules.ExponentialDecay(0.05, STEPS, 0.01)),
    ),
    "steps": (
        {"schedule": "steps", "rate_drops": ("4", "8"), "rate_drop_factor": 0.5},
        lambda: keras.optimizers.Adam(schedules.PiecewiseConstantDecay([4, 8], [0.05, 0.025, 0.0125])),
    ),
    "constant with warm-up": (
        {"schedule": "constant", "warmup": 6},
        lambda: keras.optimizers.Adam(schedules.PolynomialDecay(0.0, 6, 0.05)),
    ),
}


def keras_losses(
    optimizer: keras.Optimizer, loss: Any = None, encode: Callable[[Any], Any] = np.asarray, model: Any = None
) -> list[float]:
    """The loss of each step of Keras' own ``train_step``."""
    dataset = data.load(PLAN.data, PLAN.data_options)
    train = dataset.train
    assert isinstance(train, Split)
    if model is None:
        keras.utils.set_random_seed(PLAN.seed)
        model = build(PLAN.model, describe_data(dataset, PLAN.task))
    model.compile(optimizer, loss or keras.losses.SparseCategoricalCrossentropy())
    losses = []
    for order in epoch_orders(count_steps(PLAN, len(train), 1), len(train), PLAN.seed, 0):
        for (rows,) in order:
            batch = train.take(rows)
            model.reset_metrics()
            inputs = np.asarray(batch.inputs, np.float32) / 255
            losses.append(float(model.train_on_batch(inputs, encode(batch.targets), return_dict=True)["loss"]))
    return losses


FURTHER = ("lamb", "clip value", "steps", "linear with warm-up", "exponential", "constant with warm-up")
"""Of these, ``test_rate_schedule.py`` has every step of the schedules."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.campaign if name in FURTHER else ()) for name in OPTIMIZERS]
)
def test_the_optimizer_trains_as_keras_does(gym: Gym, name: str) -> None:
    fields, optimizer = OPTIMIZERS[name]

    trained = gym.train(PLAN.replace(**fields))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    np.testing.assert_allclose(trained.series["loss"], keras_losses(optimizer()), rtol=2e-4)


def test_one_cycle_rises_to_the_learning_rate_and_falls_to_nothing(gym: Gym) -> None:
    rates = gym.train(PLAN.replace(schedule="one-cycle", steps_per_epoch=20)).series["learning_rate"]

    assert rates[0] == pytest.approx(0.05 / 25)
    assert int(np.argmax(rates)) == 6  # 30 % of the steps
    assert rates[6] == pytest.approx(0.05)
    assert np.all(np.diff(rates[:7]) > 0)
    assert np.all(np.diff(rates[6:]) < 0)
    assert rates[-1] < 0.001


@pytest.mark.parametrize(
    "clip",
    [
        "clip_norm",
        pytest.param("global_clip_norm", marks=pytest.mark.campaign),
        pytest.param("clip_value", marks=pytest.mark.campaign),
    ],
)
def test_gradients_are_clipped_as_if_there_was_one_replica(gym: Gym, clip: str) -> None:
    plan = PLAN.replace(optimizer="sgd", steps_per_epoch=4, **{clip: 0.02})

    alone = gym.train(plan)
    mirrored = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    np.testing.assert_allclose(mirrored.series["loss"], alone.series["loss"], rtol=1e-5)
    assert not np.allclose(alone.series["loss"], gym.train(plan.replace(**{clip: None})).series["loss"], rtol=1e-3)


@pytest.mark.parametrize("replicas", [2, pytest.param(1, marks=pytest.mark.campaign)])
def test_the_moving_average_is_validated_and_saved(gym: Gym, replicas: int) -> None:
    spread = {"strategy": "mirrored", "virtual_cpus": 2} if replicas == 2 else {}
    trained = gym.train(PLAN.replace(ema_momentum=0.8, validation="end", **spread))
    optimizer = keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.8)
    dataset = data.load(PLAN.data, PLAN.data_options)
    keras.utils.set_random_seed(PLAN.seed)
    model = build(PLAN.model, describe_data(dataset, PLAN.task))
    losses = keras_losses(optimizer, model=model)
    optimizer.finalize_variable_values(model.trainable_variables)  # as fit does at its end

    np.testing.assert_allclose(trained.series["loss"], losses, rtol=2e-4)
    held_out = dataset.validation
    assert isinstance(held_out, Split)
    batch = held_out.take(np.arange(len(held_out)))
    inputs = np.asarray(batch.inputs, np.float32) / 255
    (validated,) = trained.all(Validated)
    expected = model.evaluate(inputs, batch.targets, verbose=0)
    assert validated.metrics["loss"] == pytest.approx(expected, rel=1e-3)
    saved = keras.models.load_model(trained.directory / "model.keras")
    assert saved.evaluate(inputs, batch.targets, verbose=0, return_dict=True)["loss"] == pytest.approx(
        expected, rel=1e-3
    )


def test_label_smoothing_and_metrics_by_name_are_those_of_keras(gym: Gym) -> None:
    names = ("precision", "recall", "f1_score", "top_k_categorical_accuracy", "auc")
    trained = gym.train(PLAN.replace(label_smoothing=0.1, metrics=names, validation="end"))
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    dataset = data.load(PLAN.data, PLAN.data_options)
    keras.utils.set_random_seed(PLAN.seed)
    model = build(PLAN.model, describe_data(dataset, PLAN.task))
    losses = keras_losses(keras.optimizers.Adam(0.05), loss, lambda y: np.eye(10, dtype=np.float32)[y], model)

    np.testing.assert_allclose(trained.series["loss"], losses, rtol=2e-4)
    held_out = dataset.validation
    assert isinstance(held_out, Split)
    batch = held_out.take(np.arange(len(held_out)))
    outputs = model.predict(np.asarray(batch.inputs, np.float32) / 255, verbose=0)
    labels = np.eye(10, dtype=np.float32)[batch.targets]
    expected: tuple[keras.metrics.Metric, ...] = (
        keras.metrics.Precision(),
        keras.metrics.Recall(),
        keras.metrics.F1Score("macro"),
        keras.metrics.TopKCategoricalAccuracy(),
        keras.metrics.AUC(multi_label=True, num_labels=10),
    )
    (validated,) = trained.all(Validated)
    (built,) = trained.all(ModelBuilt)
    assert {*names} - {"auc"} <= {*built.series}  # its state is too large for each step
    for name, metric in zip(names, expected, strict=True):
        metric.update_state(labels, outputs)
        assert validated.metrics[name] == pytest.approx(float(metric.result()), abs=2e-3), name


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"schedule": "linear", "warmup": 12}, "must be below the 12 steps"),
        ({"metrics": ("r2_score",)}, "r2_score cannot be measured for the task classification"),
        ({"loss": "hinge", "metrics": ("mean_absolute_error",)}, "cannot be measured"),
        ({"patience": 2, "validation": "epoch", "monitor": "val_f1"}, "f1"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_step(gym: Gym, fields: dict[str, Any], message: str) -> None:
    ended = gym.train(PLAN.replace(**fields)).ended

    assert (ended.outcome, ended.steps) == (Outcome.FAILED, 0)
    assert message in ended.reason


def test_a_restored_model_has_the_moving_average(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(ema_momentum=0.8, epochs=2, validation="end"))
    saved = keras.models.load_model(trained.directory / "model.keras")

    restored = open_trained(trained.directory, data=None, checkpoint=str(2 * STEPS)).model

    for ours, theirs in zip(restored.weights, saved.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_loss_of_numbers_compares_the_probabilities_of_classes(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(loss="mean_squared_error"))

    expected = keras_losses(
        keras.optimizers.Adam(0.05), keras.losses.MeanSquaredError(), lambda y: np.eye(10, dtype=np.float32)[y]
    )
    np.testing.assert_allclose(trained.series["loss"], expected, rtol=2e-4)
    assert "accuracy" in trained.series


COMPILED = """
import keras

@keras.saving.register_keras_serializable()
class Penalty(keras.layers.Layer):
    def call(self, x):
        self.add_loss(keras.ops.mean(keras.ops.square(x)))
        return x

def build(input_shape, classes):
    layers = [keras.layers.Flatten(), keras.layers.Dense(classes, activation="softmax")]
    model = keras.Sequential([keras.Input(input_shape), *layers])
    model.compile(keras.optimizers.SGD(0.3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""


def test_a_saved_model_has_the_optimizer_of_the_plan(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "compiled.py").write_text(COMPILED)
    plan = PLAN.replace(model=f"{tmp_path}/compiled.py:build", learning_rate=0.1, clip_norm=2.0)
    plan = plan.replace(schedule="linear", warmup=0.25)

    trained = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    optimizer = keras.models.load_model(trained.directory / "model.keras").optimizer
    assert (type(optimizer).__name__, optimizer.clipnorm) == ("SGD", 2.0)  # of both replicas together
    assert float(optimizer.learning_rate) == pytest.approx(0.0, abs=1e-6)  # the end of the schedule
    assert int(optimizer.iterations) == STEPS


def test_the_moving_average_of_the_models_own_optimizer_is_validated_saved_and_restored(
    gym: Gym, tmp_path: Path
) -> None:
    source = COMPILED.replace("SGD(0.3)", "SGD(0.3, use_ema=True, ema_momentum=0.8)").replace(
        'activation="softmax")', 'activation="softmax", kernel_regularizer=keras.regularizers.L2(0.1)), Penalty()'
    )
    (tmp_path / "averaged.py").write_text(source)
    plan = PLAN.replace(model=f"{tmp_path}/averaged.py:build", learning_rate=None, validation="end")
    dataset = data.load(PLAN.data, PLAN.data_options)
    keras.utils.set_random_seed(PLAN.seed)
    model = build(plan.model, describe_data(dataset, PLAN.task))
    keras_losses(model.optimizer, model=model)
    model.optimizer.finalize_variable_values(model.trainable_variables)  # as fit does at its end

    trained = gym.train(plan)

    held_out = dataset.validation
    assert isinstance(held_out, Split)
    batch = held_out.take(np.arange(len(held_out)))
    inputs = np.asarray(batch.inputs, np.float32) / 255
    expected, _ = model.evaluate(inputs, batch.targets, verbose=0)
    assert trained.only(Validated).metrics["loss"] == pytest.approx(expected, rel=1e-3)
    saved = keras.models.load_model(trained.directory / "model.keras")
    restored = open_trained(trained.directory, data=None, checkpoint=str(STEPS)).model
    for theirs, ours, same in zip(model.weights, saved.weights, restored.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        np.testing.assert_array_equal(same, ours)


@pytest.mark.parametrize("named", [pytest.param(False, marks=pytest.mark.campaign), True])
def test_another_loss_keeps_what_else_the_model_was_compiled_with(gym: Gym, tmp_path: Path, named: bool) -> None:
    weights, metrics = ({"digit": 0.5}, {"digit": ["accuracy"]}) if named else ([0.5], ["accuracy"])
    settings = f"loss_weights={weights}, weighted_metrics={metrics}, steps_per_execution=3"
    loss = '{"digit": "sparse_categorical_crossentropy"}' if named else '["categorical_crossentropy"]'
    source = COMPILED.replace('metrics=["accuracy"]', settings).replace('"sparse_categorical_crossentropy"', loss)
    if named:
        model = '(inputs := keras.Input(input_shape), {"digit": layers[1](layers[0](inputs))})'
        source = source.replace("Sequential([keras.Input(input_shape), *layers])", f"Model{model}")
    (tmp_path / "weighted.py").write_text(source)
    plan = PLAN.replace(model=f"{tmp_path}/weighted.py:build", learning_rate=None, label_smoothing=0.1)

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    smoothed = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    dataset = data.load(PLAN.data, PLAN.data_options)
    keras.utils.set_random_seed(PLAN.seed)
    same = build(plan.model, describe_data(dataset, PLAN.task))
    weighted = keras.optimizers.SGD(0.15)  # half the loss has half the gradients
    expected = keras_losses(weighted, smoothed, lambda y: np.eye(10, dtype=np.float32)[y], same)
    np.testing.assert_allclose(trained.series["loss"], np.array(expected) / 2, rtol=2e-4)
    config = keras.models.load_model(trained.directory / "model.keras").get_compile_config()
    assert (config["loss_weights"], config["weighted_metrics"], config["steps_per_execution"]) == (
        weights,
        metrics,
        3,
    )


OWN_STEP = """
import keras

class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Own(inputs, keras.layers.Dense(classes, activation="softmax")(keras.layers.Flatten()(inputs)))
    model.compile(keras.optimizers.SGD(0.3, use_ema=True, ema_momentum=0.8), "sparse_categorical_crossentropy")
    return model
"""


def test_a_custom_step_is_validated_with_its_weights_and_saved_with_their_average(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_STEP)
    plan = PLAN.replace(model=f"{tmp_path}/own.py:build", learning_rate=None, validation="end")

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert any("saved with the moving averages of its optimizer" in warned.message for warned in trained.all(Warned))
    dataset = data.load(PLAN.data, PLAN.data_options)
    keras.utils.set_random_seed(PLAN.seed)
    model = build(plan.model, describe_data(dataset, PLAN.task))
    keras_losses(model.optimizer, model=model)
    held_out = dataset.validation
    assert isinstance(held_out, Split)
    batch = held_out.take(np.arange(len(held_out)))
    expected = model.evaluate(np.asarray(batch.inputs, np.float32) / 255, batch.targets, verbose=0)
    assert trained.only(Validated).metrics["loss"] == pytest.approx(expected, rel=1e-3)
    model.optimizer.finalize_variable_values(model.trainable_variables)
    restored = open_trained(trained.directory, data=None, checkpoint=str(STEPS)).model
    for theirs, ours in zip(model.weights, restored.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_arguments_of_fields_are_those_of_optimizers_of_keras() -> None:
    kinds = [kind for name, kind in vars(keras.optimizers).items() if name.lower() in task_choices.OPTIMIZERS]
    known = {name for kind in kinds for name in inspect.signature(kind).parameters}
    assert {use.argument for use in USES.values() if use.argument} <= known
