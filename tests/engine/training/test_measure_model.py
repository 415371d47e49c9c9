from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.training.measure_model import measure_model

SUBCLASSED = """
import keras

class Mine(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.flat = keras.layers.Flatten()
        self.dense = keras.layers.Dense(classes)

    def call(self, x):
        return self.dense(self.flat(x))

def build(classes):
    return Mine(classes)
"""

SIZED_BY_DATA = """
import keras
import numpy as np

def data():
    return np.zeros((20, 4), "float32"), np.zeros((20, 1), "float32")

def build(input_shape):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Dense(1)])
"""


def test_a_model_whose_data_is_loaded_first_is_traced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SIZED_BY_DATA)

    found = measure_model(Plan(model=f"{path}:build", data=f"{path}:data"), lambda *_: None)

    assert found.operations > 0
    assert found.examples == 18, "two are for validation"
    assert "AutoGraph" not in caplog.text


def test_sizes_match_counts_by_hand() -> None:
    found = measure_model(Plan(model="mlp"))

    assert found.parameters == found.trainable == 64 * 128 + 128 + 128 * 10 + 10
    assert (found.input_shape, found.classes) == ((8, 8, 1), 10)
    # The hidden layer, the probabilities, and last the batch, which the first layer's gradient reads.
    assert (found.saved, found.largest) == (4 * (128 + 10 + 64), 4 * 128)
    assert found.remat_share == 1, "there is nothing to divide"
    assert found.operations > 20
    assert found.is_divisible
    assert (found.examples, found.data_bytes) == (1437, 1437 * (64 + 4))


@pytest.mark.parametrize(
    ("fields", "trainable"), [({}, 128 * 10 + 10), ({"unfreeze_epoch": 2}, 64 * 128 + 128 + 128 * 10 + 10)]
)
def test_only_weights_that_train_in_some_epoch_are_trainable(fields: dict[str, Any], trainable: int) -> None:
    assert measure_model(Plan(model="mlp", freeze=("all-but-head",), **fields)).trainable == trainable


def test_layers_to_freeze_that_are_not_there_are_an_error_before_training() -> None:
    with pytest.raises(PlanError, match="no layer is named 'nosuch\\*'"):
        measure_model(Plan(model="mlp", freeze=("nosuch*",)))


def test_layers_to_rematerialize_that_are_not_there_are_an_error_before_training() -> None:
    with pytest.raises(PlanError, match="no layer is named 'nosuch\\*'"):
        measure_model(Plan(model="mlp", remat="on", remat_layers=("nosuch*",)))


def test_auto_counts_the_activations_of_models_with_layers_of_keras_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SUBCLASSED)

    assert measure_model(Plan(model="resnet20")).auto_activations > 10_000
    assert measure_model(Plan(model=f"{path}:build")).auto_activations == 0


def test_a_subclassed_model_is_traced(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SUBCLASSED)

    found = measure_model(Plan(model=f"{path}:build"))

    assert found.parameters == 650
    assert found.saved == 4 * (10 + 64)
    assert found.operations > 0


@pytest.mark.parametrize("name", ["cnn", "resnet20"])
def test_running_statistics_are_not_trainable(name: str) -> None:
    found = measure_model(Plan(model=name))

    assert 0 < found.trainable < found.parameters


def test_the_layers_of_an_imagenet_model_count_without_its_weights() -> None:
    plan = Plan(model="MobileNetV2", data="synthetic:32x32x1:7", initial_weights="imagenet")

    found = measure_model(plan)

    assert found.parameters == 2_257_984 + 1280 * 7 + 7
    assert found.saved > 4 * 100_000
    assert 0.1 < found.remat_share < 0.5
    assert found.preprocessing == "Rescaling"
