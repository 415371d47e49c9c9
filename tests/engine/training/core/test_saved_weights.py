"""The weights of a checkpoint are read without the optimizer's state, also of layers in lists."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.events import Outcome, Validated
from accel_engine.plan import Plan
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.training.core.saved_weights import UNTRACKED, restore_weights, untracked_weights, whole_checkpoint

from ..conftest import Gym

SOURCE = """
import keras
from keras import layers

class Blocks(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.flatten = layers.Flatten()
        self.blocks = [layers.Dense(8), layers.BatchNormalization(), layers.Dense(classes, activation="softmax")]

    def call(self, x, training=False):
        x = self.flatten(x)
        for block in self.blocks:
            x = block(x, training=training) if isinstance(block, layers.BatchNormalization) else block(x)
        return x

def build(classes):
    return Blocks(classes)
"""


def made() -> keras.Model:
    code: dict[str, object] = {}
    exec(SOURCE, code)
    model = code["build"](2)
    model(np.zeros((1, 3), np.float32))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def test_weights_are_restored_and_nothing_else(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32), np.arange(8) % 2
    model, path = made(), str(tmp_path / "step-1")
    model.train_on_batch(x, y)
    tf.train.Checkpoint(model=model, **{UNTRACKED: untracked_weights(model)}).write(path)
    saved = model.get_weights()
    model.train_on_batch(x, y)
    state = [variable.numpy() for variable in model.optimizer.variables]

    restore_weights(model, path)

    for weight, before in zip(model.weights, saved, strict=True):
        np.testing.assert_array_equal(weight, before)
    for variable, value in zip(model.optimizer.variables, state, strict=True):
        np.testing.assert_array_equal(variable, value)
    tf.train.Checkpoint(model=model).write(str(tmp_path / "old"))
    with pytest.raises((AssertionError, ValueError)):
        restore_weights(made(), str(tmp_path / "old"))


def test_a_run_whose_layers_are_in_a_list_continues_exactly(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(SOURCE)
    plan = Plan(model=f"{tmp_path}/blocks.py:build", epochs=2, steps_per_epoch=3, batch_size=64, optimizer="adam")
    whole = gym.train(plan)
    stopped = gym.train(plan, at={2: [("stop",)]})

    resumed = gym.train(plan, run=stopped.directory)

    assert resumed.ended.outcome is Outcome.FINISHED, resumed.ended.reason
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert [event.metrics for event in resumed.all(Validated)] == [event.metrics for event in whole.all(Validated)]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            tf.errors.NotFoundError(None, None, "Key a not found"),
            "the checkpoint of step 4 does not fit the model: Key",
        ),
        (
            tf.errors.InvalidArgumentError(None, None, "a has int8"),
            "the checkpoint of step 4 does not fit the model: a",
        ),
        (tf.errors.ResourceExhaustedError(None, None, "OOM"), "cannot restore the checkpoint of step 4: OOM"),
        (tf.errors.UnknownError(None, None, "Input/output error"), "cannot restore the checkpoint of step 4: Input/"),
    ],
)
def test_another_model_is_told_from_a_lack_of_memory_and_a_broken_disk(
    tmp_path: Path, error: Exception, words: str
) -> None:
    for suffix in ("index", "data-00000-of-00001"):
        (tmp_path / f"step-4.{suffix}").touch()
    write_checksums(tmp_path, 4)
    with pytest.raises(RunError, match=f"^{words}"), whole_checkpoint(tmp_path, 4):
        raise error
