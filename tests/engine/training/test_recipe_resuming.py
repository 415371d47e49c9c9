"""A run with a whole recipe continues as if it had never been interrupted."""

import runpy
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.events import CheckpointSaved, Outcome, RunStarted, Validated, Warned, to_stored
from accel_engine.plan import Plan
from accel_engine.run import RunWriter
from accel_engine.run.directory.run_paths import checkpoint_steps, latest_checkpoint
from accel_engine.run.store.database import RunDatabase
from accel_engine.training.progress.timetable import Timetable

from .conftest import Gym, Trained

PLAN = Plan(
    model="mlp",
    epochs=4,
    batch_size=128,
    optimizer="sgd",
    momentum=0.9,
    learning_rate=0.2,
    weight_decay=0.001,
    ema_momentum=0.7,
    global_clip_norm=1.0,
    schedule="linear",
    warmup=0.1,
    label_smoothing=0.1,
    metrics=("precision",),
    validation_every="7 steps",
    checkpoint_every="5 steps",
    keep_checkpoints=2,
    restore_best="on",
    monitor="validation_loss",
    patience=50,
    augmentation=("flip", "crop", "mixup"),
    freeze=("batch_normalization*",),
    unfreeze_epoch=3,
)
"""48 steps, 12 an epoch."""

TUNED = Plan(
    epochs=4,
    batch_size=128,
    micro_batches=2,
    precision="mixed_bfloat16",
    optimizer="adamw",
    learning_rate=0.02,
    weight_decay=0.01,
    clip_norm=0.5,
    schedule="one-cycle",
    warmup=0.25,
    class_weight=("balanced",),
    metrics=("f1_score",),
    freeze=("all-but-head",),
    unfreeze_epoch=2,
    validation_every="5 steps",
    checkpoint_every="9 steps",
    keep_checkpoints=1,
    patience=8,
    restore_best="on",
    monitor="validation_f1_score",
)
"""Starts from the weights of a file."""

STREAMED = Plan(
    task="classification",
    epochs=4,
    steps_per_epoch=12,
    optimizer="lamb",
    learning_rate=0.01,
    ema_momentum=0.8,
    clip_value=0.1,
    schedule="steps",
    rate_drops=("30%", "60%"),
    label_smoothing=0.1,
    freeze=("batch_normalization*",),
    unfreeze_epoch=3,
    validation_every="4 steps",
    checkpoint_every="5 steps",
    patience=20,
    min_delta=0.01,
    restore_best="on",
    monitor="validation_loss",
)
"""Its passes over the data have ten batches, and its epochs twelve."""

FILE = """
import keras
import numpy as np
from keras import layers

def build(input_shape, classes):
    regularizer = keras.regularizers.L2(0.01)
    return keras.Sequential([
        keras.Input(input_shape),
        layers.Flatten(),
        layers.Dense(32, kernel_regularizer=regularizer),
        layers.BatchNormalization(gamma_regularizer=regularizer),
        layers.Dropout(0.3),
        layers.Dense(classes, activation="softmax", kernel_regularizer=regularizer),
    ])

def examples(seed, count):
    x = np.random.default_rng(seed).normal(size=(count, 8)).astype("float32")
    return x, x[:, :3].argmax(axis=1)

def data():
    def batches():
        x, y = examples(1, 240)
        for first in range(0, 240, 24):
            yield x[first : first + 24], y[first : first + 24]
    return {"train": batches, "validation": examples(2, 50), "class_names": ["a", "b", "c"]}
"""
"""A model whose every layer with weights is regularized, also those that are frozen at first."""


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("own") / "own.py"
    path.write_text(FILE)
    return str(path)


def copied(trained: Trained, directory: Path) -> Path:
    """A copy of a run, to be continued."""
    return Path(shutil.copytree(trained.directory, directory / trained.directory.name))


def losses(trained: Trained) -> dict[int, float]:
    """The latest validation at each step."""
    return {event.step: event.metrics["loss"] for event in trained.all(Validated)}


def check_continuation(gym: Gym, plan: Plan, steps: int) -> None:
    """Compare a run with one that is lost after some steps, so that it continues from an earlier checkpoint."""
    whole = gym.train_once(plan)
    assert whole.ended.outcome is Outcome.FINISHED, whole.ended.reason
    lost = gym.train(plan, at={steps: [("stop_now",)]})
    assert lost.ended.outcome is Outcome.STOPPED
    assert 0 < latest_checkpoint(lost.directory) < steps

    resumed = gym.train(plan, run=lost.directory)

    assert len(whole.series["loss"]) == whole.ended.steps > 40
    assert (resumed.ended.outcome, resumed.ended.reason) == (whole.ended.outcome, whole.ended.reason)
    for name, values in whole.series.items():
        np.testing.assert_array_equal(resumed.series[name], values)
    assert losses(resumed) == losses(whole)
    saved = [keras.models.load_model(run.directory / "model.keras") for run in (whole, resumed)]
    for ours, theirs in zip(saved[1].weights, saved[0].weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("steps", "replicas"), [(26, 1), pytest.param(14, 2, marks=pytest.mark.campaign)])
def test_a_run_with_all_of_it_continues_exactly(gym: Gym, own: str, steps: int, replicas: int) -> None:
    spread = {"strategy": "mirrored", "virtual_cpus": 2} if replicas == 2 else {}
    check_continuation(gym, PLAN.replace(model=f"{own}:build", **spread), steps)


@pytest.mark.campaign
def test_a_fine_tuned_run_in_low_precision_continues_exactly(gym: Gym, own: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(3)
    weights = tmp_path / "initial.weights.h5"
    runpy.run_path(own)["build"]((28, 28, 1), 10).save_weights(weights)
    check_continuation(gym, TUNED.replace(model=f"{own}:build", initial_weights=str(weights)), 22)


def test_a_stream_of_unknown_length_continues_exactly(gym: Gym, own: str) -> None:
    check_continuation(gym, STREAMED.replace(model=f"{own}:build", data=f"{own}:data"), 33)


def test_it_validates_and_saves_at_its_steps_and_keeps_the_best_checkpoint(gym: Gym, own: str) -> None:
    whole = gym.train_once(PLAN.replace(model=f"{own}:build"))

    assert [event.step for event in whole.all(Validated)] == [7, 14, 21, 28, 35, 42, 48]
    best = min(losses(whole), key=lambda step: losses(whole)[step])
    kept = checkpoint_steps(whole.directory)
    assert {best, 48} <= {*kept}
    assert len(kept) <= 3
    assert {event.step for event in whole.all(CheckpointSaved)} >= {5, 10, 15, 20, 25, 30, 35, 40, 45, 48}
    assert any(event.best and event.step == best for event in whole.all(CheckpointSaved))


def test_a_validation_that_was_missed_between_checkpoint_and_kill_is_made_up(gym: Gym) -> None:
    plan = Plan(model="mlp", epochs=2, batch_size=128, validation_every="7 steps")
    whole = gym.train_once(plan)
    # A command saves a checkpoint at a step that is to be validated, before it is.
    stopped = gym.train(plan, at={14: [("stop",)]})
    assert latest_checkpoint(stopped.directory) == 14
    assert 14 not in losses(stopped)

    resumed = gym.train(plan, run=stopped.directory)

    assert losses(resumed) == losses(whole)


def overfitting(gym: Gym) -> Trained:
    return gym.train_once(EARLY)


EARLY = Plan(model="mlp", epochs=30, batch_size=512, learning_rate=0.3, patience=2, restore_best="on")


def test_training_stops_early_and_the_model_has_its_best_weights(gym: Gym) -> None:
    trained = overfitting(gym)

    assert trained.ended.outcome is Outcome.FINISHED
    assert trained.ended.epochs < 30
    assert trained.ended.reason.startswith("early stopping: no better validation accuracy in 2 validations")
    accuracies = {event.step: event.metrics["accuracy"] for event in trained.all(Validated)}
    best = max(accuracies, key=lambda step: accuracies[step])
    assert trained.ended.steps == [*accuracies][[*accuracies].index(best) + 2]
    assert any(f"best step, {best}" in event.message for event in trained.all(Warned))
    model = keras.models.load_model(trained.directory / "model.keras")
    held_out = data.load("digits", PLAN.data_options).validation
    assert held_out is not None
    batch = held_out.take(np.arange(len(held_out)))  # type: ignore[union-attr]
    outputs = model.predict(np.asarray(batch.inputs, np.float32) / 255, verbose=0)
    assert np.mean(outputs.argmax(axis=1) == batch.targets) == pytest.approx(accuracies[best])


def test_a_run_that_stopped_early_can_be_trained_longer(gym: Gym, tmp_path: Path) -> None:
    trained = overfitting(gym)
    copy = copied(trained, tmp_path)
    with closing(RunDatabase(copy)) as database:  # as the supervisor of the engine does
        event = RunStarted(time=0, run="", name="", plan={}, first_step=36, pid=1, host="", versions={})
        database.add_event(event.time, event.kind(), to_stored(event))

    resumed = gym.train(EARLY, run=copy)

    assert resumed.ended.outcome is Outcome.FINISHED
    assert resumed.ended.steps > trained.ended.steps


def test_a_run_killed_while_it_stopped_early_stops_at_once(gym: Gym, tmp_path: Path) -> None:
    trained = overfitting(gym)
    copy = copied(trained, tmp_path)
    with closing(RunDatabase(copy)) as database:
        database.execute("DELETE FROM main.event WHERE kind = 'run_ended'")

    resumed = gym.train(EARLY, run=copy)

    assert (resumed.ended.steps, resumed.ended.reason) == (trained.ended.steps, trained.ended.reason)


def test_the_time_limit_stops_a_run_that_can_be_continued(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hour is over once steps are written."""
    written, write = list[int](), RunWriter.write_chunk

    def note(writer: RunWriter, first_step: int, *chunk: Any) -> None:
        written.append(first_step)
        write(writer, first_step, *chunk)

    monkeypatch.setattr(RunWriter, "write_chunk", note)
    monkeypatch.setattr(Timetable, "seconds_left", property(lambda _: 0.0 if written else 3600.0))
    plan = Plan(model="mlp", epochs=1000, batch_size=64, time_limit="1h")
    stopped = gym.train(plan)

    assert (stopped.ended.outcome, stopped.ended.reason) == (Outcome.STOPPED, "the time limit of 1h is reached")
    assert latest_checkpoint(stopped.directory) == stopped.ended.steps > 0
    assert (stopped.directory / "model.keras").is_file()


def test_early_stopping_needs_something_to_validate(gym: Gym, tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", x=np.ones((8, 3), np.float32), y=np.ones(8, np.float32))
    plan = Plan(data=str(tmp_path / "few.npz"), task="regression", split="none", patience=2, monitor="validation_loss")
    ended = gym.train(plan).ended

    assert ended.outcome is Outcome.FAILED
    assert "there is nothing to validate" in ended.reason
    assert "--monitor loss" in ended.reason
