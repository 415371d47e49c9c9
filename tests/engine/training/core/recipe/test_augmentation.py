"""Augmented training steps equal Keras' own layers', and a continued run's an uninterrupted one's."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from accel_engine import data
from accel_engine.events import Outcome, Validated, Warned, WorkCounted
from accel_engine.plan import Plan
from accel_engine.plan.step_counts import count_steps
from accel_engine.training.core.batches import epoch_orders
from accel_engine.training.core.recipe.loss import mixed_metrics_note

from ...conftest import Gym

MODELS = """
import keras
from keras import layers

def classifier(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(classes, activation="softmax")])

def binary(input_shape):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(1, activation="sigmoid")])

def compiled(input_shape, classes):
    model = classifier(input_shape, classes)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    return model

class Own(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.dense = layers.Dense(classes)
    def call(self, x):
        return self.dense(keras.ops.reshape(x, (-1, 192)))
    def train_step(self, data):
        return {"loss": 0.0}

def own(classes):
    model = Own(classes)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def pixels(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Conv2D(3, 1, activation="softmax")])
"""

CHAIN = "flip,vertical-flip,crop,rotation,zoom,color,randaugment,erasing,cutmix"


def chain(seed: int) -> list[keras.Layer]:
    """Keras' layers of :data:`CHAIN` for pixels in [0, 1]."""
    unit = (0.0, 1.0)
    return [
        layers.RandomFlip("horizontal", seed=seed + 1),
        layers.RandomFlip("vertical", seed=seed + 2),
        layers.RandomTranslation(0.125, 0.125, interpolation="nearest", seed=seed + 3),
        layers.RandomRotation(15 / 360, seed=seed + 4),
        layers.RandomZoom(0.2, seed=seed + 5),
        layers.RandomColorJitter(unit, 0.2, 0.2, (0.4, 0.6), 0.05, seed=seed + 6),
        layers.RandAugment(unit, seed=seed + 7),
        layers.RandomErasing((0.25, 0.25), value_range=unit, seed=seed + 8),
        layers.CutMix(seed=seed + 9),
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("augmented") / "models.py"
    path.write_text(MODELS)
    return str(path)


def plain_losses(plan: Plan, chained: list[keras.Layer], loss: keras.losses.Loss, encode: object) -> list[float]:
    """The losses of a plain loop, which augments each batch with Keras' layers."""
    dataset = data.load(plan.data, plan.data_options)
    train = dataset.train
    units = 1 if isinstance(loss, keras.losses.BinaryCrossentropy) else dataset.classes
    keras.utils.set_random_seed(plan.seed)
    activation = "sigmoid" if units == 1 else "softmax"
    model = keras.Sequential([keras.Input(dataset.shape), layers.Flatten(), layers.Dense(units, activation=activation)])
    optimizer = keras.optimizers.SGD(plan.learning_rate)
    losses = []
    for epoch in range(plan.epochs):
        for order in epoch_orders(count_steps(plan, len(train), 1), len(train), plan.seed, epoch):
            for rows in order[:, 0]:
                batch = {
                    "images": tf.constant(train.inputs[rows] * np.float32(1 / 255)),
                    "labels": encode(train.targets[rows]),
                }
                for layer in chained:
                    batch = layer(batch, training=True)
                with tf.GradientTape() as tape:
                    value = loss(batch["labels"], model(batch["images"], training=True))
                optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
                losses.append(float(value))
    return losses


def plan_of_chain(models: str) -> Plan:
    return Plan(
        model=f"{models}:classifier",
        data="synthetic:8x8x3:10:160",
        augmentation=CHAIN.split(","),
        optimizer="sgd",
        learning_rate=0.05,
        batch_size=16,
        epochs=2,
        steps_per_epoch=5,
        seed=5,
    )


def test_steps_equal_those_of_keras_layers(gym: Gym, models: str) -> None:
    plan = plan_of_chain(models)

    whole = gym.train_once(plan)

    assert whole.ended.outcome is Outcome.FINISHED, whole.ended.reason
    losses = plain_losses(
        plan, chain(5), keras.losses.CategoricalCrossentropy(), lambda y: tf.one_hot(y.reshape(-1), 10)
    )
    np.testing.assert_allclose(whole.series["loss"], losses, atol=1e-5)

    # The forward pass and the gradient of the weights, without randaugment's convolutions.
    assert whole.all(WorkCounted)[-1].flops == 2 * 2 * 16 * 192 * 10


@pytest.mark.campaign  # of other layers, a whole recipe does so in test_recipe_resuming.py
def test_a_run_with_all_layers_continues_exactly(gym: Gym, models: str) -> None:
    plan = plan_of_chain(models)
    whole = gym.train_once(plan)
    killed = gym.train(plan, at={8: [("stop_now",)]})
    assert killed.ended.steps >= 8
    resumed = gym.train(plan, run=killed.directory)
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.all(Validated)[-1].metrics == whole.all(Validated)[-1].metrics


def test_mixup_mixes_the_labels_of_two_classes(gym: Gym, models: str) -> None:
    plan = Plan(
        model=f"{models}:binary",
        data="synthetic:8x8x1:2:128",
        augmentation=("mixup",),
        optimizer="sgd",
        learning_rate=0.05,
        batch_size=32,
        epochs=1,
        micro_batches=2,
        metrics=("precision",),
    )

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    encode = lambda y: tf.constant(y.reshape(-1, 1).astype(np.float32))  # noqa: E731
    losses = plain_losses(plan, [layers.MixUp(seed=1)], keras.losses.BinaryCrossentropy(), encode)
    np.testing.assert_allclose(trained.series["loss"], losses, atol=1e-5)
    assert trained.series["accuracy"].max() > 0  # mixed labels count as the class of which they are more
    assert any(
        "precision has little meaning; in validation it is right" in warned.message for warned in trained.all(Warned)
    )


def test_metrics_of_mixed_labels_are_noted_in_one_sentence() -> None:
    metrics = (keras.metrics.CategoricalAccuracy("accuracy"), keras.metrics.F1Score(), keras.metrics.AUC())
    (note,) = mixed_metrics_note(Plan(augmentation=("mixup",)), "classification", metrics)
    assert note.endswith("f1_score, auc have little meaning; in validation they are right")


@pytest.mark.parametrize("strategy", ["mirrored", pytest.param("xla", marks=pytest.mark.campaign)])
def test_replicas_and_xla_augment_too(gym: Gym, models: str, strategy: str) -> None:
    plan = Plan(
        model=f"{models}:classifier",
        data="synthetic:8x8x3:10:160",
        augmentation=("light", "cutmix"),
        batch_size=16,
        epochs=1,
        validation="off",
    )
    plan = plan.replace(xla="on") if strategy == "xla" else plan.replace(strategy="mirrored", virtual_cpus=2)

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    if strategy == "xla":  # images are changed before the compiled step, with the same random numbers
        np.testing.assert_allclose(trained.series["loss"], gym.train(plan.replace(xla="off")).series["loss"], atol=1e-5)


def test_what_cannot_take_mixed_labels_is_refused(gym: Gym, models: str) -> None:
    plan = Plan(data="synthetic:8x8x3:10:160", augmentation=("mixup",), epochs=1)

    sparse = gym.train(plan.replace(model=f"{models}:compiled"))
    assert sparse.ended.outcome is Outcome.FAILED
    assert "metric sparse_categorical_accuracy does not take" in sparse.ended.reason

    custom = gym.train(plan.replace(model=f"{models}:own", augmentation=("flip",)))
    assert "has a custom train_step" in custom.ended.reason


def test_masks_move_with_their_images(gym: Gym, models: str, tmp_path: Path) -> None:
    """A model that outputs its input reaches a loss of 0 only while masks and images are changed alike."""
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 3, (32, 16, 16)).repeat(2, 1).repeat(2, 2)[:, :16, :16].astype(np.int32)
    images = (np.eye(3)[masks] * 255).astype(np.uint8)
    np.savez(tmp_path / "masks.npz", x_train=images, y_train=masks, x_val=images[:4], y_val=masks[:4])
    (tmp_path / "same.py").write_text(
        "import keras\n\ndef build():\n"
        "    inputs = keras.Input((16, 16, 3))\n"
        "    kernel = keras.layers.Dense(3, kernel_initializer='identity', use_bias=False)\n"
        "    model = keras.Model(inputs, keras.layers.Softmax()(kernel(inputs * 50.0)))\n"
        "    model.compile(keras.optimizers.SGD(1e-9), 'sparse_categorical_crossentropy')\n"
        "    return model\n"
    )
    plan = Plan(
        model=f"{tmp_path / 'same.py'}:build",
        data=str(tmp_path / "masks.npz"),
        task="segmentation",
        scale="0-1",
        augmentation=("flip", "vertical-flip", "crop"),
        batch_size=16,
        epochs=3,
        validation="off",
    )

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert trained.series["accuracy"].min() == 1.0
    mixed = gym.train(plan.replace(augmentation=("cutmix",), epochs=1))
    assert "cutmix is for classification and multi-label; the task is segmentation" in mixed.ended.reason
    assert not trained.all(Warned) or "augment" not in trained.all(Warned)[0].message
