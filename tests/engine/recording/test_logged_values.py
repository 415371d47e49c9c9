"""What the values of logs are, by the state of a model's metrics."""

from types import SimpleNamespace
from typing import Any

import keras
import pytest

from accel_engine.recording.logged_values import BATCH_VALUE, LoggedValues
from accel_engine.recording.running_means import RunningMean

from .conftest import tiny


@pytest.fixture
def loss() -> Any:
    metric = keras.metrics.Mean(name="loss")
    metric.update_state([0.0, 0.0, 0.0])
    return metric


@pytest.fixture
def model(loss: Any) -> Any:
    """With a custom ``train_step``."""
    return SimpleNamespace(metrics=[SimpleNamespace(metrics=[loss])])


def test_a_mean_is_recognized_by_its_value_and_then_known(model: Any, loss: Any) -> None:
    state = LoggedValues()
    assert state.identify(model, {"loss": 0.0}, permanent=True) == {"loss": RunningMean(0.0, 3.0)}
    assert state.identify(model, {"loss": 5.0}, permanent=True) == {"loss": RunningMean(5.0, 3.0)}
    loss.reset_state()
    assert state.identify(model, {"loss": 5.0}, permanent=True) == {"loss": None}


def test_what_one_batch_seems_to_show_is_not_remembered(model: Any, loss: Any) -> None:
    state = LoggedValues()
    assert state.identify(model, {"total": 7.0}, permanent=False) == {"total": BATCH_VALUE}
    assert state.identify(model, {"total": 0.0}, permanent=False) == {"total": RunningMean(0.0, 3.0)}
    assert state.identify(model, {"total": 7.0}, permanent=True) == {"total": BATCH_VALUE}
    assert state.identify(model, {"total": 0.0}, permanent=True) == {"total": BATCH_VALUE}


def test_a_value_of_keras_own_step_that_is_no_mean_is_unknown() -> None:
    state, model = LoggedValues(), tiny()
    for _ in range(2):
        assert state.identify(model, {"loss": 123.0}, permanent=True) == {"loss": None}


def test_a_metric_that_may_report_a_value_makes_it_unknown(model: Any) -> None:
    accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    greatest = keras.metrics.AUC(name="auc")
    greatest.update_state([0.0, 1.0], [0.2, 0.9])
    model.metrics = [accuracy, greatest]
    found = LoggedValues().identify(model, {"area": float(greatest.result()), "own": -3.0}, permanent=True)
    assert found == {"area": None, "own": BATCH_VALUE}
