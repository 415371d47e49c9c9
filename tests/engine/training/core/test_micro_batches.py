"""Micro-batches give the same losses and gradients as the whole batch, or are not used."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from accel_engine.data.structure import Batch
from accel_engine.devices.host_probe import processors
from accel_engine.events import ModelBuilt, Outcome
from accel_engine.keras_support.losses import is_mean
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run.store.series_names import MICRO_BATCH_NORM
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.core.micro_batches import candidate_count, part_sizes, supports_micro_batches

from ..conftest import Gym

PLAN = Plan(
    model="fashion-cnn",
    batch_size=64,
    last_batch="drop",
    epochs=2,
    validation="off",
    xla="off",
    precision="float32",
)

MODELS = """
import keras
from keras import layers

class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def own(input_shape, classes):
    inputs = keras.Input(input_shape)
    return Own(inputs, layers.Dense(classes, activation="softmax")(layers.Flatten()(inputs)))

class Idle(layers.Layer):
    def build(self, input_shape):
        self.idle = self.add_weight(shape=(3,))

    def call(self, inputs):
        return inputs

def unused(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), Idle(),
                             layers.Dense(classes, activation="softmax")])

def penalizing(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(),
                             layers.Dense(classes, activation="softmax", activity_regularizer="l2")])

def dropping(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(16), layers.Dropout(0.3),
                             layers.Dense(classes, activation="softmax")])

def summing(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(classes, activation="softmax")])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(reduction="sum"))
    return model
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, marks=pytest.mark.campaign),
        pytest.param({"optimizer": "sgd", "learning_rate": 0.05}, marks=pytest.mark.campaign),
        pytest.param({"strategy": "mirrored", "virtual_cpus": 2}, marks=pytest.mark.campaign),
        pytest.param({"xla": "on"}, marks=pytest.mark.campaign),
        pytest.param({"precision": "mixed_float16"}, marks=pytest.mark.campaign),
        {"class_weight": ("balanced",), "last_batch": "keep", "optimizer": "sgd", "learning_rate": 0.05},
    ],
    ids=["adam", "sgd", "mirrored", "xla", "float16", "weights"],
)
def test_micro_batches_train_like_the_whole_batch(gym: Gym, changes: dict[str, object]) -> None:
    plan = PLAN.replace(gradient_norm="on", **changes)

    whole, parted = gym.train_once(plan), gym.train(plan.replace(micro_batches=4))

    tolerance = 1e-5 if plan.precision == "float32" else 1e-2
    assert whole.series.keys() == parted.series.keys() - {MICRO_BATCH_NORM}
    for name, values in whole.series.items():
        np.testing.assert_allclose(parted.series[name], values, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("left", "virtual_cpus"),
    [
        (58, 1),
        pytest.param(5, 2, marks=pytest.mark.campaign),
        pytest.param(4, 1, marks=pytest.mark.campaign),
        pytest.param(48, 1, marks=pytest.mark.campaign),
        pytest.param(48, 2, marks=pytest.mark.campaign),
        pytest.param(57, 2, marks=pytest.mark.campaign),
    ],
)
def test_a_smaller_last_batch_has_fewer_or_smaller_micro_batches(gym: Gym, left: int, virtual_cpus: int) -> None:
    plan = PLAN.replace(
        data=f"synthetic:8x8x1:10:{64 * 3 + left}",
        optimizer="sgd",
        learning_rate=0.05,
        last_batch="keep",
        gradient_norm="on",
        strategy="mirrored" if virtual_cpus > 1 else "default",
        virtual_cpus=virtual_cpus,
    )

    whole, parted = gym.train_once(plan), gym.train(plan.replace(micro_batches=4))

    assert len(whole.series["loss"]) == 8
    assert whole.only(ModelBuilt).dropped_examples == 0
    for name, values in whole.series.items():
        np.testing.assert_allclose(parted.series[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("examples", "parts"),
    [
        (64, {16: 4}),
        (48, {16: 3}),
        (40, {14: 1, 13: 2}),
        (24, {12: 2}),
        (31, {16: 1, 15: 1}),
        (33, {11: 3}),
        (16, {}),
        (1, {}),
        (None, {}),
    ],
)
def test_parts_of_a_batch_are_about_equal_and_no_larger_than_those_of_a_whole_one(
    examples: int | None, parts: dict[int, int]
) -> None:
    batch = Batch({"x": tf.TensorSpec((examples, 3))}, tf.TensorSpec((examples,)))

    assert part_sizes(4, 64, batch) == parts
    assert part_sizes(1, 64, batch) == {}


def test_single_examples_are_parts_only_where_those_of_a_whole_batch_are() -> None:
    assert [part_sizes(4, 4, Batch(tf.TensorSpec((examples, 3)))) for examples in (4, 3, 1)] == [{1: 4}, {1: 3}, {}]


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_an_unused_weight_is_unchanged(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:unused")

    whole, parted = gym.train(plan), gym.train(plan.replace(micro_batches=4))

    np.testing.assert_allclose(parted.series["loss"], whole.series["loss"], atol=1e-5)


def test_dropout_does_not_depend_on_the_chunk_size(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:dropping", micro_batches=4)

    few = gym.train(plan)
    gym.steps = 11

    np.testing.assert_array_equal(gym.train(plan).series["loss"], few.series["loss"])


@pytest.mark.parametrize(
    ("model", "why"),
    [("own", "custom train_step"), ("summing", "a mean over examples"), ("penalizing", "activity_regularizer")],
)
def test_micro_batches_that_change_results_are_rejected(gym: Gym, models: str, model: str, why: str) -> None:
    ended = gym.train(PLAN.replace(model=f"{models}:{model}", micro_batches=2)).ended

    assert ended.outcome is Outcome.FAILED
    assert "micro_batches" in ended.reason
    assert why in ended.reason


@pytest.mark.parametrize(("asked", "count", "parallel_iterations"), [(4, 4, 1), (None, 2, processors())])
def test_a_plans_micro_batches_run_sequentially(asked: int | None, count: int, parallel_iterations: int) -> None:
    assembly = assemble(resolve(PLAN.replace(micro_batches=asked)), ("CPU:0",), None)

    graph = Loop(assembly, ExecutionMode(micro_batches=count)).trace(Segment(np.zeros((2, 1, 64), np.int32), 2, 64))

    nodes = [node for function in graph.as_graph_def().library.function for node in function.node_def]
    (loop,) = [node for node in nodes if node.op in ("While", "StatelessWhile") and f"iterations.{count}" in node.name]
    assert loop.attr["parallel_iterations"].i == parallel_iterations


@pytest.mark.parametrize(
    ("batch", "parts"), [(1, 1), (16, 2), (64, 2), (96, 2), (128, 4), (1000, 25), (1009, 1), (2 * 1009, 1)]
)
def test_micro_batches_are_equal_and_fit_a_cache(batch: int, parts: int) -> None:
    assert candidate_count(batch) == parts


def network(*middle: layers.Layer) -> keras.Model:
    model = keras.Sequential([keras.Input((8, 8, 1)), *middle, layers.Flatten(), layers.Dense(2)])
    model.compile(loss="mse")
    return model


def test_only_per_example_layers_support_micro_batches() -> None:
    class Conv2D(layers.Conv2D):  # somebody's own, whatever its name
        pass

    inputs = keras.Input((8, 8, 1))
    centred = keras.Model(inputs, inputs - keras.ops.mean(inputs, axis=0))
    centred.compile(loss="mse")

    assert supports_micro_batches(
        network(layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.Dropout(0.5))
    )
    assert supports_micro_batches(network(network(layers.Conv2D(4, 3))))
    assert not supports_micro_batches(network(layers.Conv2D(4, 3), layers.BatchNormalization()))
    assert not supports_micro_batches(network(Conv2D(4, 3)))
    assert not supports_micro_batches(network(layers.Conv2D(4, 3, activation=lambda x: x - keras.ops.mean(x, axis=0))))
    assert not supports_micro_batches(network(layers.Conv2D(4, 3, activity_regularizer="l2")))
    assert not supports_micro_batches(centred)
    assert not supports_micro_batches(network(centred))


@pytest.mark.parametrize(
    ("loss", "mean"),
    [
        ("sparse_categorical_crossentropy", True),
        (keras.losses.MeanSquaredError(), True),
        ([keras.losses.MeanSquaredError(reduction="mean")], True),
        ({"output": "mse"}, True),
        (keras.losses.mean_squared_error, True),
        (keras.losses.MeanSquaredError(reduction="sum"), False),
        (keras.losses.Dice(), False),
        ("tversky", False),
        (None, False),
        (lambda _, outputs: outputs, False),
    ],
)
def test_which_losses_are_means_over_examples(loss: object, mean: bool) -> None:
    assert is_mean(loss) is mean
