"""Loss and accuracy of every step, compared with a plain loop."""

from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Dataset, Split
from accel_engine.events import EpochEnded, Outcome, Validated
from accel_engine.models.build import build
from accel_engine.models.loaded_data import describe_data
from accel_engine.plan import Plan
from accel_engine.plan.step_counts import count_steps
from accel_engine.training.core.batches import epoch_orders

from .conftest import Gym

MODELS = """
import keras
from keras import layers

def normalised(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(64), layers.BatchNormalization(),
                             layers.ReLU(), layers.Dropout(0.3), layers.Dense(classes, activation="softmax")])

# Smooth, for where ReLU bends the rounding of sums, which kernels order otherwise, becomes 1e-4.
def convolved(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Conv2D(32, 3, padding="same", use_bias=False),
                             layers.BatchNormalization(), layers.Activation("silu"), layers.Flatten(),
                             layers.Dense(classes, activation="softmax")])

def _with(loss, units, activation):
    model = keras.Sequential([keras.Input((8, 8, 1)), layers.Flatten(), layers.Dense(units, activation=activation)])
    model.compile(keras.optimizers.SGD(0.05), loss)
    return model

def sparse():
    return _with(keras.losses.SparseCategoricalCrossentropy(from_logits=True), 10, None)

def one_hot():
    return _with("categorical_crossentropy", 10, "softmax")

def unreduced():
    return _with(keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None), 10, None)

def named():
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    inputs = keras.Input((8, 8, 1))
    model = keras.Model(inputs, {"digit": layers.Dense(10, name="last")(layers.Flatten()(inputs))})
    model.compile(keras.optimizers.SGD(0.05), {"digit": loss}, loss_weights={"digit": 0.5})
    return model

def unnamed_loss():
    model = named()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def probability():
    return _with("binary_crossentropy", 1, "sigmoid")

def logit():
    return _with(keras.losses.BinaryCrossentropy(from_logits=True), 1, None)
"""

STEPS = 100
"""Steps per epoch: more than four passes over the data, or more than two."""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def rows_of(plan: Plan, examples: int, epoch: int) -> Iterator[np.ndarray]:
    """The rows of each step of an epoch; the last step of every pass over the data is smaller."""
    for order in epoch_orders(count_steps(plan, examples, 1), examples, plan.seed, epoch):
        yield from order[:, 0]


class Plain:
    """Two epochs of a plain loop, which reads back every step.

    Args:
        plan: Names the model, the data and how to train.
        loss: What to minimise.
        targets: Brings sparse labels to the form that the loss wants.
        right: Tells from a model's outputs and sparse labels which examples it is right about.

    Attributes:
        losses: One a step.
        accuracies: One a step.
    """

    def __init__(
        self,
        plan: Plan,
        loss: keras.losses.Loss,
        targets: Callable[[np.ndarray], np.ndarray] = lambda labels: labels,
        right: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda outputs, labels: outputs.argmax(-1) == labels,
    ) -> None:
        dataset: Dataset = data.load(plan.data, plan.data_options)
        train = dataset.train
        assert isinstance(train, Split)
        keras.utils.set_random_seed(plan.seed)
        model = build(plan.model, describe_data(dataset, plan.task))
        optimizer = keras.optimizers.get(
            {"class_name": plan.optimizer, "config": {"learning_rate": plan.learning_rate}}
        )
        optimizer.build(model.trainable_variables)

        @tf.function
        def step(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.GradientTape() as tape:
                outputs = model(x, training=True)
                value = loss(y, outputs)
            optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
            return value, outputs

        self.losses, self.accuracies = [], []
        for epoch in range(plan.epochs):
            for rows in rows_of(plan, len(train), epoch):
                # Multiplied as the engine does: what a division rounds otherwise, convolutions make 1e-3 of.
                x = train.inputs[rows].astype(np.float32) * np.float32(1 / 255)
                value, outputs = step(x, targets(train.targets[rows]))
                self.losses.append(float(value))
                self.accuracies.append(np.mean(right(outputs.numpy(), train.targets[rows])))


@pytest.mark.parametrize(
    ("model", "optimizer", "rate"),
    [
        ("normalised", "sgd", 0.05),
        ("convolved", "adam", 0.001),
        pytest.param("mlp", "sgd", 0.05, marks=pytest.mark.campaign),
        pytest.param("mlp", "adam", 0.001, marks=pytest.mark.campaign),
        pytest.param("normalised", "adam", 0.001, marks=pytest.mark.campaign),
        pytest.param("cnn", "adam", 0.001, marks=pytest.mark.campaign),
        pytest.param("convolved", "sgd", 0.05, marks=pytest.mark.campaign),
    ],
)
def test_200_steps_equal_those_of_a_plain_loop(gym: Gym, models: str, model: str, optimizer: str, rate: float) -> None:
    plan = Plan(
        model=f"{models}:{model}" if model in ("normalised", "convolved") else model,
        optimizer=optimizer,
        learning_rate=rate,
        precision="float32",
        batch_size=16 if model == "cnn" else 64,
        epochs=2,
        steps_per_epoch=STEPS,
        validation="off",
    )

    trained = gym.train(plan)

    plain = Plain(plan, keras.losses.SparseCategoricalCrossentropy())
    np.testing.assert_allclose(trained.series["loss"], plain.losses, atol=1e-5)
    np.testing.assert_allclose(trained.series["accuracy"], plain.accuracies, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "classes", "loss", "targets", "right"),
    [
        (
            "sparse",
            10,
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            lambda labels: labels,
            lambda outputs, labels: outputs.argmax(-1) == labels,
        ),
        (
            "one_hot",
            10,
            keras.losses.CategoricalCrossentropy(),
            lambda labels: np.eye(10, dtype=np.float32)[labels],
            lambda outputs, labels: outputs.argmax(-1) == labels,
        ),
        (
            "probability",
            2,
            keras.losses.BinaryCrossentropy(),
            lambda labels: labels[:, np.newaxis].astype(np.float32),
            lambda outputs, labels: (outputs[:, 0] > 0.5) == (labels == 1),
        ),
        (
            "logit",
            2,
            keras.losses.BinaryCrossentropy(from_logits=True),
            lambda labels: labels[:, np.newaxis].astype(np.float32),
            lambda outputs, labels: (outputs[:, 0] > 0) == (labels == 1),
        ),
    ],
)
def test_accuracy_is_correct_for_every_label_encoding(
    gym: Gym, models: str, model: str, classes: int, loss: keras.losses.Loss, targets: object, right: object
) -> None:
    plan = Plan(
        model=f"{models}:{model}",
        data=f"synthetic:8x8x1:{classes}:800",
        optimizer="sgd",
        learning_rate=0.05,
        precision="float32",
        epochs=2,
        steps_per_epoch=STEPS,
        validation="off",
    )

    trained = gym.train(plan)

    plain = Plain(plan, loss, targets, right)
    np.testing.assert_allclose(trained.series["loss"], plain.losses, atol=1e-5)
    np.testing.assert_allclose(trained.series["accuracy"], plain.accuracies, atol=1e-6)
    assert np.mean(plain.accuracies[-20:]) > np.mean(plain.accuracies[:20]) + 0.1


@pytest.mark.parametrize(
    ("model", "steps", "rate"),
    [
        pytest.param("unreduced", 20, 0.001, id="a loss without a reduction"),
        pytest.param("sparse", None, 0.05, id="a smaller last batch"),
        pytest.param("named", None, 0.05, id="a single output in a dictionary"),
        pytest.param("unnamed_loss", None, 0.05, id="its loss has no name"),
    ],
)
def test_means_of_epochs_and_validation_equal_those_of_fit(
    gym: Gym, models: str, model: str, steps: int | None, rate: float
) -> None:
    plan = Plan(
        model=f"{models}:{model}",
        optimizer="sgd",
        learning_rate=rate,
        precision="float32",
        batch_size=64,
        epochs=2,
        steps_per_epoch=steps,
    )

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    dataset = data.load(plan.data, plan.data_options)
    keras.utils.set_random_seed(plan.seed)
    same = build(plan.model, describe_data(dataset, plan.task))
    same.optimizer.learning_rate = plan.learning_rate
    held_out = dataset.validation.inputs * np.float32(1 / 255), dataset.validation.targets
    for epoch, (ended, validated) in enumerate(zip(trained.all(EpochEnded), trained.all(Validated), strict=True)):
        # Batch by batch: a pass over the data, whose last batch is smaller, may end within an epoch.
        batches = [
            (dataset.train.inputs[rows] * np.float32(1 / 255), dataset.train.targets[rows])
            for rows in rows_of(plan, len(dataset.train), epoch)
        ]
        history = same.fit(
            (batch for batch in batches),
            steps_per_epoch=len(batches),
            shuffle=False,
            validation_data=held_out,
            validation_batch_size=plan.batch_size,
            verbose=0,
        ).history
        assert ended.metrics["loss"] == pytest.approx(history["loss"][0], abs=1e-4)
        assert validated.metrics["loss"] == pytest.approx(history["val_loss"][0], abs=1e-4)
