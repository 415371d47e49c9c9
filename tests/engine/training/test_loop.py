import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.plan import Plan
from accel_engine.training import feed, loop
from accel_engine.training.loop import ChunkSize

from .conftest import Gym

PLAN = Plan(model="mlp", epochs=2, validation="off")


def reference_losses(plan: Plan, steps: int) -> np.ndarray:
    """The losses of a plain loop, one eager step after the other, on the same batches."""
    dataset = data.load(plan.data, image_size=None, seed=plan.seed)
    keras.utils.set_random_seed(plan.seed)
    model = keras.Sequential(
        [
            keras.Input(dataset.shape),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(dataset.classes),
        ]
    )
    optimizer = keras.optimizers.get({"class_name": plan.optimizer, "config": {"learning_rate": plan.learning_rate}})
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    per_epoch = len(dataset.train.y) // plan.batch_size
    losses = []
    for step in range(steps):
        epoch, index = divmod(step, per_epoch)
        rows = feed.epoch_order(plan.seed, epoch, len(dataset.train.y), per_epoch, 1, plan.batch_size)[index, 0]
        with tf.GradientTape() as tape:
            loss = loss_of(dataset.train.y[rows], model(dataset.train.x[rows].astype("float32") * dataset.scale))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        losses.append(float(loss))
    return np.array(losses)


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.05), ("adam", 0.001)])
def test_every_steps_loss_is_that_of_a_plain_loop(gym: Gym, optimizer: str, rate: float) -> None:
    plan = PLAN.replace(optimizer=optimizer, learning_rate=rate)

    trained = gym.train(plan)

    np.testing.assert_allclose(trained.series["loss"], reference_losses(plan, 44), atol=1e-5)


def test_the_size_of_chunks_changes_nothing(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    by_two = gym.train(PLAN.replace(model="cnn"))
    monkeypatch.setattr(loop, "MAXIMUM_STEPS", 64)
    by_many = gym.train(PLAN.replace(model="cnn"))

    np.testing.assert_array_equal(by_two.series["loss"], by_many.series["loss"])
    np.testing.assert_array_equal(by_two.series["accuracy"], by_many.series["accuracy"])


def test_two_replicas_learn_as_one_device_does(gym: Gym) -> None:
    alone = gym.train(PLAN)
    shared = gym.train(PLAN.replace(strategy="mirrored", virtual_cpus=2))

    np.testing.assert_allclose(alone.series["loss"], shared.series["loss"], atol=1e-5)
    np.testing.assert_allclose(alone.series["accuracy"], shared.series["accuracy"], atol=1e-6)


@pytest.mark.parametrize("replicas", [1, 2])
def test_streamed_and_resident_data_give_the_same_batches(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    plan = PLAN.replace(strategy="mirrored" if replicas == 2 else "one-device", virtual_cpus=replicas)
    resident = gym.train(plan.replace(virtual_cpus=replicas))
    monkeypatch.setattr(feed, "RESIDENT_SHARE", 0.0)
    streamed = gym.train(plan)

    np.testing.assert_allclose(resident.series["loss"], streamed.series["loss"], atol=1e-6)


def test_xla_computes_the_same(gym: Gym) -> None:
    plain = gym.train(PLAN.replace(epochs=1))
    compiled = gym.train(PLAN.replace(epochs=1, xla="on"))

    np.testing.assert_allclose(plain.series["loss"], compiled.series["loss"], atol=1e-4)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_low_precision_learns(gym: Gym, precision: str) -> None:
    trained = gym.train(Plan(model="mlp", epochs=6, precision=precision))

    assert trained.ended.metrics["validation_accuracy"] > 0.85


def test_a_chunk_size_settles_at_its_target() -> None:
    size = ChunkSize(target=0.05)

    for _ in range(10):
        size.learn(size.steps, size.steps * 0.001)

    assert size.steps == pytest.approx(50, abs=1)


def test_a_chunk_size_grows_with_care_and_shrinks_at_once() -> None:
    size = ChunkSize(target=0.05)
    size.learn(1, 1e-6)
    assert size.steps == 4

    size.learn(4, 10.0)
    assert size.steps == 1
