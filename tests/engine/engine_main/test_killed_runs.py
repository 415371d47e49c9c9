"""The run of a killed engine continues from its newest checkpoint as if it had never been killed."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel_engine import run
from accel_engine.events import CheckpointSaved, Outcome, RunStarted, Validated
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.engine.commands import read_answer

from .record import last, read, steps

FILE = Path(__file__).parents[1] / "training" / "source_models.py"

IMAGES = """
import keras
from keras import layers

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Conv2D(4, 3, strides=2, name="conv2d"),
                             layers.BatchNormalization(), layers.Flatten(), layers.Dropout(0.2),
                             layers.Dense(classes, activation="softmax")])
"""
"""Has what a checkpoint must restore: random numbers, moving averages, and a layer that is frozen at first."""


@pytest.mark.campaign
def test_a_killed_run_continues_with_the_next_batch_of_its_stream(
    engines: list["subprocess.Popen[str]"], wait_until: Callable[..., None]
) -> None:
    plan = Plan(
        model=f"{FILE}:model",
        data=f"{FILE}:endless_tf_data",
        batch_size=32,
        steps_per_epoch=4000,
        epochs=1,
        validation="off",
        xla="off",
    )
    killed, whole = run.create(plan), run.create(plan)
    engines.append(start_engine(killed))
    wait_until(lambda: steps(killed) > 20, "training")
    number = run.send_command(killed, "checkpoint")
    wait_until(lambda: read_answer(killed, number), "a checkpoint")
    engines[0].kill()
    engines[0].wait()
    saved = [event for event in read(killed)[0] if isinstance(event, CheckpointSaved)][-1]
    assert 0 < saved.step < 4000

    run.reopen(killed, plan)
    engines += [start_engine(killed), start_engine(whole)]
    for engine in engines[1:]:
        assert engine.wait(240) == 0

    assert [event.first_step for event in read(killed)[0] if isinstance(event, RunStarted)] == [0, saved.step]
    assert last(killed).outcome is Outcome.FINISHED
    np.testing.assert_allclose(read(killed)[1], read(whole)[1], atol=1e-5)


@pytest.mark.campaign
def test_a_killed_run_with_a_recipe_has_the_losses_of_an_uninterrupted_one(
    engines: list["subprocess.Popen[str]"], tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    (tmp_path / "images.py").write_text(IMAGES)
    plan = Plan(
        model=f"{tmp_path}/images.py:build",
        epochs=12,
        batch_size=128,
        optimizer="adamw",
        learning_rate=0.01,
        weight_decay=0.01,
        ema_momentum=0.9,
        global_clip_norm=1.0,
        schedule="cosine",
        warmup=0.1,
        label_smoothing=0.1,
        augmentation=("crop", "mixup"),
        freeze=("conv2d",),
        unfreeze_epoch=4,
        validation_every="7 steps",
        checkpoint_every="10 steps",
        keep_checkpoints=1,
        patience=50,
        restore_best="on",
    )
    killed, whole = run.create(plan), run.create(plan)
    engines.append(start_engine(killed))
    wait_until(lambda: latest_checkpoint(killed) >= 60, "checkpoints after layers were unfrozen")
    engines[0].kill()
    engines[0].wait()

    run.reopen(killed, plan)
    engines += [start_engine(killed), start_engine(whole)]
    for engine in engines[1:]:
        assert engine.wait(240) == 0

    assert last(killed).outcome is last(whole).outcome is Outcome.FINISHED
    assert len(read(whole)[1]) == 144
    np.testing.assert_array_equal(read(killed)[1], read(whole)[1])
    losses = [
        {event.step: event.metrics["loss"] for event in read(directory)[0] if isinstance(event, Validated)}
        for directory in (killed, whole)
    ]
    assert losses[0] == losses[1]
