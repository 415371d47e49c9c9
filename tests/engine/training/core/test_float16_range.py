"""Values that float16 cannot hold are named, with what would be right."""

from pathlib import Path

import keras
import numpy as np

from accel_engine.data.dataset import Dataset, Split
from accel_engine.events import Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.training.core.float16_range import float16_notes

from ..conftest import Gym

FILE = """
import keras
import numpy as np

def data():
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    x[:, 2] *= 2e5
    return {"train": (x, x[:, 0])}

def build():
    hidden = keras.layers.Dense(8, activation="tanh")
    model = keras.Sequential([keras.Input((4,)), hidden, keras.layers.Dense(1, dtype="float32")])
    model.compile("sgd", "mse")
    return model
"""


def test_inputs_that_are_infinite_are_named_and_so_are_steps_without_an_effect(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FILE)
    own, gym.steps = tmp_path / "own.py", 8
    plan = Plan(model=f"{own}:build", data=f"{own}:data", batch_size=8, epochs=6, shuffle="off", split="none")
    trained = gym.train(plan.replace(precision="mixed_float16", force="on"))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    warned = [each.message for each in trained.all(Warned)]
    (inputs,) = [each for each in warned if each.startswith("inputs")]
    assert inputs.startswith("inputs in column 2 of up to 621,267 ")
    assert "are infinite in the model's layers in float16, which ends at 65,504: use --precision mixed_b" in inputs
    assert len([each for each in warned if "steps do not change the weights" in each]) == 1
    assert len(set(trained.series["loss"][:8])) == len(set(trained.series["loss"])) > 1


def test_targets_out_of_reach_are_named() -> None:
    inputs = {"size": np.array([[70_000.0], [np.inf], [2.0]], np.float32), "id": np.array([[10**6]] * 3)}
    data = Dataset("made", Split(inputs, np.array([[1.0, -9e4]] * 3, np.float32)), target_names=("low", "high"))
    halves, floats = (keras.KerasTensor((None, 2), dtype=name) for name in ("float16", "float32"))

    size, high = float16_notes(data, halves, 1.0)

    assert size.startswith("inputs size of up to 70,000 are infinite")
    assert high.startswith("targets in column high of up to 90,000 are out of reach for an output in float16")
    assert 'or give the last layer dtype="float32"' in high
    assert float16_notes(data, floats, 1.0) == [size]
    assert float16_notes(data, floats, 1 / 255) == []
