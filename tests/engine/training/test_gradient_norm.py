"""The gradient norm of every step, compared with a plain loop with ``tf.GradientTape``."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.events import ModelBuilt, Outcome
from accel_engine.models.build import build
from accel_engine.models.loaded_data import describe_data
from accel_engine.plan import Plan
from accel_engine.plan.step_counts import count_steps
from accel_engine.run.store.series_names import MICRO_BATCH_NORM
from accel_engine.training.core.batches import epoch_orders
from accel_engine.training.core.gradient_norms import MAX_LAYERS, GradientNorms, layers_of

from .conftest import Gym

STEPS = 6

PLAN = Plan(
    model="mlp",
    batch_size=64,
    epochs=1,
    steps_per_epoch=STEPS,
    optimizer="sgd",
    learning_rate=0.1,
    validation="off",
    gradient_norm="on",
)

OWN = """
import keras

class Model(keras.Model):
    def train_step(self, batch):
        return super().train_step(batch)

def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    return Model(inputs, keras.layers.Dense(classes, activation="softmax")(keras.layers.Flatten()(inputs)))
"""


def plain_norms(clip: float | None = None, parts: int = 1) -> list[float]:
    """Of each step of a plain loop: of the whole batch, or the root of the mean square over its parts."""
    dataset = data.load(PLAN.data, PLAN.data_options)
    train = dataset.train
    assert isinstance(train, Split)
    keras.utils.set_random_seed(PLAN.seed)
    model = build(PLAN.model, describe_data(dataset, PLAN.task))
    optimizer = keras.optimizers.SGD(0.1, clipnorm=clip)
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy()
    norms = []
    (order,) = epoch_orders(count_steps(PLAN, len(train), 1), len(train), PLAN.seed, 0)

    def gradients_of(rows: np.ndarray) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            outputs = model(train.inputs[rows].astype(np.float32) * np.float32(1 / 255), training=True)
            value = loss(train.targets[rows], outputs)
        return tape.gradient(value, model.trainable_variables)

    for (rows,) in order:
        found = [gradients_of(part) for part in np.split(rows, parts)]
        squares = [tf.add_n([tf.reduce_sum(gradient**2) for gradient in gradients]) for gradients in found]
        norms.append(float(tf.sqrt(tf.add_n(squares) / parts)))
        means = [tf.add_n(each) / parts for each in zip(*found, strict=True)]
        optimizer.apply(means, model.trainable_variables)
    return norms


@pytest.mark.parametrize(
    ("changes", "tolerance"),
    [
        ({"xla": "on"}, 1e-5),
        ({"strategy": "central-storage", "virtual_cpus": 2}, 1e-5),
        pytest.param({}, 1e-5, marks=pytest.mark.campaign),
        pytest.param({"strategy": "mirrored", "virtual_cpus": 2}, 1e-5, marks=pytest.mark.campaign),
        pytest.param({"precision": "mixed_float16"}, 2e-2, marks=pytest.mark.campaign),
        ({"precision": "mixed_float16", "strategy": "mirrored", "virtual_cpus": 2}, 2e-2),
    ],
)
def test_norms_equal_those_of_a_plain_loop(gym: Gym, changes: dict[str, object], tolerance: float) -> None:
    trained = gym.train(PLAN.replace(**changes))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert trained.only(ModelBuilt).series == ("loss", "accuracy", "gradient_norm", "learning_rate")
    np.testing.assert_allclose(trained.series["gradient_norm"], plain_norms(), rtol=tolerance)


@pytest.mark.parametrize("changes", [{}, pytest.param({"xla": "on"}, marks=pytest.mark.campaign)], ids=str)
def test_the_norm_of_micro_batches_equals_that_of_a_plain_loop(gym: Gym, changes: dict[str, object]) -> None:
    plan = PLAN.replace(micro_batches=4, **changes)
    trained = gym.train(plan)

    norm, parts = (trained.series[name] for name in ("gradient_norm", "gradient_norm_of_micro_batches"))
    assert trained.only(ModelBuilt).series[2:4] == ("gradient_norm", "gradient_norm_of_micro_batches")
    assert (parts > norm).all()  # of fewer examples, gradients have more noise
    np.testing.assert_allclose(parts, plain_norms(parts=4), rtol=1e-5)


def test_the_norm_is_computed_before_clipping(gym: Gym, tmp_path: Path) -> None:
    path = tmp_path / "clipped.py"
    path.write_text(
        "import keras\n"
        "def build(input_shape, classes):\n"
        "    dense = keras.layers.Dense\n"
        "    layers = [keras.layers.Flatten(), dense(128, 'relu'), dense(classes, 'softmax')]\n"
        "    model = keras.Sequential([keras.Input(input_shape), *layers])\n"
        "    model.compile(keras.optimizers.SGD(0.1, clipnorm=0.01), 'sparse_categorical_crossentropy')\n"
        "    return model\n"
    )

    trained = gym.train(PLAN.replace(model=f"{path}:build", optimizer="auto", learning_rate=None))

    np.testing.assert_allclose(trained.series["gradient_norm"], plain_norms(clip=0.01), rtol=1e-5)


def test_the_norm_is_not_computed_by_default(gym: Gym) -> None:
    assert set(gym.train(PLAN.replace(gradient_norm="off")).series) == {"loss", "accuracy", "learning_rate"}


def test_a_custom_train_step_is_rejected_with_the_reason(gym: Gym, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)

    ended = gym.train(PLAN.replace(model=f"{path}:build")).ended

    assert ended.outcome is Outcome.FAILED
    assert "custom train_step" in ended.reason


def test_repeated_rows_of_an_embedding_are_summed() -> None:
    words = keras.layers.Embedding(3, 2, "ones", name="words")
    model = keras.Sequential([keras.Input((), dtype="int32"), words, keras.layers.Dense(1, name="out")])
    table = model.trainable_variables[0]
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(tf.gather(table.value, [1, 1]))
    gradient = tape.gradient(value, table.value)
    assert isinstance(gradient, tf.IndexedSlices)
    norms = GradientNorms(PLAN.replace(gradient_norm="layers"), model)

    measured = norms.measure([gradient, None, None], tf.constant(2.0))

    assert norms.names == ("gradient_norm", "gradient_norm_words", "gradient_norm_out")
    assert [float(each) for each in measured] == pytest.approx([8**0.5 / 2, 8**0.5 / 2, 0.0])


LAYERS = PLAN.replace(gradient_norm="layers")


@pytest.mark.parametrize(
    "changes",
    [
        {"micro_batches": 2},
        {"strategy": "mirrored", "virtual_cpus": 2},
        pytest.param({}, marks=pytest.mark.campaign),
        pytest.param({"xla": "on"}, marks=pytest.mark.campaign),
    ],
)
def test_the_squares_of_the_norms_of_layers_add_up(gym: Gym, changes: dict[str, object]) -> None:
    trained = gym.train(LAYERS.replace(**changes))

    names = [name for name in trained.series if name.startswith("gradient_norm_")]
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert set(names) == set(trained.only(ModelBuilt).series[3:-1])
    names = [name for name in names if name != MICRO_BATCH_NORM]
    assert len(names) == 2
    squares = [np.square(trained.series[name]) for name in names]
    np.testing.assert_allclose(np.sqrt(np.sum(squares, axis=0)), plain_norms(), rtol=1e-5)


def test_a_deep_model_has_a_bounded_number_of_series() -> None:
    layers = [keras.layers.Dense(1, name=f"layer{index}") for index in range(100)]
    found = list(layers_of(keras.Sequential([keras.Input((1,)), *layers])))

    assert len(found) == MAX_LAYERS
    assert found[0] == "gradient_norm_layer0"
    assert found[-1] == "gradient_norm_layer99"
