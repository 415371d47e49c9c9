"""Series of steps from the logs of batches."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from accel_engine.recording import batch_series
from accel_engine.recording.batch_series import BatchSeries
from accel_engine.recording.running_means import Values
from accel_engine.run.store.series_names import SeriesNames


class Model(SimpleNamespace):
    """A model with the train step of Keras, whose loss is a running mean."""

    train_step = keras.Model.train_step

    def __init__(self) -> None:
        super().__init__(metrics=[keras.metrics.Mean(name="loss")])


def added(values: list[float], weights: list[float], execution: int = 1, steps: int | None = None) -> BatchSeries:
    """Series to which the logs of batches, or of executions, were added, with a look at the first as in a ``fit``."""
    series = BatchSeries(execution, steps, SeriesNames())
    for mean in np.cumsum(np.multiply(values, weights)) / np.cumsum(weights):
        series.add({"loss": float(np.float32(mean))})
        if series.pending_steps == execution:
            assert not series.take(model_of(values[:1], weights[:1]), epoch_ended=False)
    return series


def model_of(values: list[float], weights: list[float]) -> Model:
    model = Model()
    model.metrics[0].total.assign(np.sum(np.multiply(values, weights)))
    model.metrics[0].count.assign(np.sum(weights))
    return model


def taken(series: BatchSeries, model: Model) -> dict[str, Values]:
    return series.take(model, epoch_ended=True)


def test_the_last_execution_of_an_epoch_may_have_fewer_steps() -> None:
    values, weights = [4.0, 3.0, 2.0, 1.0], [32.0, 32.0, 32.0, 8.0]
    series = added(values, weights, execution=4)
    assert series.pending_steps == 16
    found = taken(series, model := model_of(values, weights))

    assert list(found) == ["mean_loss"]
    np.testing.assert_allclose(found["mean_loss"], np.repeat(values, [4, 4, 4, 1]), rtol=1e-5)
    assert not series.missing
    assert series.pending_steps == 0
    assert taken(series, model) == {}


@pytest.mark.parametrize(("steps", "name"), [(5, "loss"), (6, "running_loss")])
def test_epochs_that_are_too_long_have_running_means(monkeypatch: pytest.MonkeyPatch, steps: int, name: str) -> None:
    monkeypatch.setattr(batch_series, "PRECISE_BATCHES", 5)
    values, weights = [4.0, 2.0], [8.0, 8.0]

    found = taken(added(values, weights, steps=steps), model_of(values, weights))

    np.testing.assert_allclose(found[name], [4.0, 2.0 if name == "loss" else 3.0], rtol=1e-5)


@pytest.mark.parametrize(("execution", "name"), [(2, "mean_loss"), (3, "running_loss")])
def test_so_have_epochs_of_unknown_length_that_turn_out_too_long(
    monkeypatch: pytest.MonkeyPatch, execution: int, name: str
) -> None:
    monkeypatch.setattr(batch_series, "PRECISE_BATCHES", 5)
    values, weights = [4.0, 2.0], [8.0, 8.0]

    assert list(taken(added(values, weights, execution), model_of(values, weights))) == [name]


def test_a_value_that_rounding_has_lost_is_missing() -> None:
    values, weights = [1.0, 2.0, 3e8, 1.0, 2.0], [32.0] * 5
    series = added(values, weights)
    found = taken(series, model_of(values, weights))

    assert np.isfinite(found["loss"]).tolist() == [True, True, True, False, False]
    assert series.missing == {"loss"}


def test_a_zero_among_many_large_values_is_known() -> None:
    values = [100.0] * 10_000 + [0.0]
    weights = [8.0] * len(values)
    series = added(values, weights)
    found = taken(series, model_of(values, weights))

    assert np.isfinite(found["loss"]).all()
    assert not series.missing


def test_the_size_of_a_batch_is_that_of_the_first() -> None:
    values, weights = [4.0, 2.0], [32.0, 8.0]
    assert BatchSeries(1, None, SeriesNames()).batch(Model()) is None
    series = added(values, weights, execution=4)
    taken(series, model_of(values, weights))

    assert series.batch(Model()) == 8


def test_an_epoch_is_complete_with_its_last_batch() -> None:
    series = added([1.0, 2.0], [8.0, 8.0], execution=2)
    assert series.has_all_batches(4)
    assert series.has_all_batches(3)
    assert not series.has_all_batches(5)
    assert not series.has_all_batches(None)
    assert series.just_completed_epoch(4)
    assert not series.just_completed_epoch(None)
    taken(series, model_of([1.0, 2.0], [8.0, 8.0]))
    assert series.has_all_batches(4)
    assert not series.just_completed_epoch(4)
    series.begin_epoch()
    assert not series.has_all_batches(4)
