"""Early stopping as Keras' callback does it, and from the events of a continued run."""

from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.events import EpochEnded, Event, Outcome, RunEnded, RunStarted, Validated
from accel_engine.run.history.early_stopping import EarlyStopping
from accel_engine.run.history.history import History, fold


def validated(step: int, value: float, *, by_command: bool = False) -> Validated:
    return Validated(time=0.0, epoch=0, step=step, metrics={"loss": value}, seconds=0.0, by_command=by_command)


def started(first_step: int) -> RunStarted:
    return RunStarted(time=0.0, run="r", name="", plan={}, first_step=first_step, pid=1, host="", versions={})


def ended(outcome: Outcome) -> RunEnded:
    return RunEnded(time=0.0, outcome=outcome, steps=0, epochs=0, seconds=0.0)


def follow(patience: int | None = 2, **settings: Any) -> EarlyStopping:
    return EarlyStopping("validation_loss", lower=True, patience=patience, **settings)


def stopped_at(values: list[float], **settings: Any) -> int | None:
    """The index of the value after which training stops."""
    stopping = follow(**settings)
    for index, value in enumerate(values):
        stopping.observe(validated(index + 1, value))
        if stopping.should_stop:
            return index
    return None


@pytest.mark.parametrize("seed", range(20))
def test_it_stops_where_keras_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=30).cumsum() * 0.2, 1).tolist()
    if seed % 4 == 0:
        values[3] = float("nan")
    delta, patience = [0.0, 0.15][seed % 2], int(rng.integers(1, 5))
    callback = keras.callbacks.EarlyStopping("val_loss", min_delta=delta, patience=patience, mode="min")
    callback.set_model(keras.Sequential())
    callback.model.stop_training = False
    callback.on_train_begin()
    expected = None
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, {"val_loss": value})
        if callback.model.stop_training:
            expected = epoch
            break

    assert stopped_at(values, min_delta=delta, patience=patience) == expected


def test_values_that_are_no_numbers_are_waited_for_like_others() -> None:
    assert stopped_at([float("nan")] * 3, patience=2) == 1


def test_a_greater_value_is_better_by_more_than_the_smallest_change() -> None:
    stopping = EarlyStopping("validation_loss", lower=False, min_delta=0.125)
    values = [0.5, 0.625, 0.75, 0.75]
    assert [stopping.observe(validated(step, value)) for step, value in enumerate(values)] == [True, False, True, False]


def test_the_best_value_is_said_in_the_digits_of_the_charts() -> None:
    stopping = follow()
    for step, value in enumerate((1.0, 2.0, 3.0), 1000):
        stopping.observe(validated(step, value))
    assert stopping.reason == "early stopping: no better validation loss in 2 validations; best: 1.0000 at step 1,000"


def test_a_validation_by_command_may_be_the_best_but_does_not_count_as_waiting() -> None:
    stopping = follow()
    stopping.observe(validated(1, 1.0))
    assert not any(stopping.observe(validated(2, 2.0, by_command=True)) for _ in range(5))
    assert not stopping.should_stop
    assert stopping.observe(validated(3, 0.5, by_command=True))
    assert (stopping.best, stopping.best_step) == (0.5, 3)


def test_a_metric_of_training_is_that_of_each_epoch() -> None:
    stopping = EarlyStopping("accuracy", lower=False, patience=1)
    for step, value in ((5, 0.5), (10, 0.7), (15, 0.6)):
        stopping.observe(EpochEnded(time=0.0, epoch=1, step=step, metrics={"accuracy": value}, seconds=0.0))
    assert stopping.should_stop
    assert stopping.best_step == 10
    assert "accuracy" in stopping.reason
    assert "0.7000 at step 10" in stopping.reason


def test_values_after_the_checkpoint_of_a_continued_run_do_not_count() -> None:
    events: list[Event] = [started(0), validated(10, 1.0), validated(20, 0.5), validated(30, 0.7), started(10)]
    stopping = follow()
    stopping.restore(fold(History(), events))
    assert (stopping.best, stopping.best_step) == (1.0, 10)
    assert not stopping.should_stop

    stopping = follow()
    events += [validated(20, 2.0), validated(30, 3.0), validated(40, 0.1), started(30)]
    stopping.restore(fold(History(), events))
    assert stopping.should_stop
    assert stopping.best_step == 10


def test_waiting_begins_anew_after_a_run_that_had_finished() -> None:
    events = [started(0), validated(10, 1.0), validated(20, 2.0), validated(30, 2.0)]
    for outcome, stops in ((Outcome.FINISHED, False), (Outcome.STOPPED, True)):
        stopping = follow()
        stopping.restore(fold(History(), [*events, ended(outcome), started(30)]))
        assert stopping.should_stop is stops
        assert stopping.best_step == 10


def test_the_value_of_a_step_that_is_validated_again_counts_once() -> None:
    stopping = follow()
    for step in (1, 2, 2, 2):
        stopping.observe(validated(step, float(step)))
    assert not stopping.should_stop
    stopping.observe(validated(3, 3.0))
    assert stopping.should_stop


def test_the_best_of_some_steps() -> None:
    stopping = follow(min_delta=0.2)
    for step, value in ((10, 1.0), (20, 0.5), (30, 0.4), (40, float("nan"))):
        stopping.observe(validated(step, value))
    assert stopping.best_among([10, 20, 30, 40]) == stopping.best_step == 20
    assert stopping.best_among([10, 30, 40]) == 30
    assert stopping.best_among([10, 15]) == 10
    assert stopping.best_among([40]) is None
