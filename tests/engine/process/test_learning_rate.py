"""The recorded learning rate of each step with several processes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from keras.optimizers import schedules

from accel_engine import run
from accel_engine.events import Outcome
from accel_engine.launch.engine_process import start
from accel_engine.plan import Plan
from engine.process.record import last, read

MODEL = """
import keras
from keras import layers

def build(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(classes, activation="softmax")])
    decay = keras.optimizers.schedules.CosineDecay(0.01, decay_steps=12, warmup_target=0.1, warmup_steps=5)
    model.compile(keras.optimizers.SGD(decay), "sparse_categorical_crossentropy")
    return model
"""


@pytest.mark.parametrize("strategy", ["multi-worker", "parameter-server"])
def test_each_step_records_the_rate_of_the_schedule(
    engines: list["subprocess.Popen[str]"], home: Path, tmp_path: Path, strategy: str
) -> None:
    (tmp_path / "scheduled.py").write_text(MODEL)
    workers = 2 if strategy == "multi-worker" else 1  # steps of two are not taken in their order
    plan = Plan(
        model=f"{tmp_path / 'scheduled.py'}:build",
        steps_per_epoch=10,
        epochs=2,
        validation="off",
        strategy=strategy,
        local_workers=workers,
    )
    directory = run.create(plan)
    engines.append(start(directory))
    assert engines[-1].wait(120) == 0, last(directory)

    assert last(directory).outcome is Outcome.FINISHED
    decay = schedules.CosineDecay(0.01, decay_steps=12, warmup_target=0.1, warmup_steps=5)
    expected = [float(decay(step)) for step in range(20)]
    np.testing.assert_allclose(read(directory, "learning_rate")[1], expected, rtol=1e-6)
