"""What a session writes of a ``fit``, call by call, with every time known."""

import math
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import keras
import pytest

from accel_engine import clock
from accel_engine.events import (
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.recording import fit_session
from accel_engine.recording.fit_session import FitSession
from accel_engine.run.engine.commands import Command

from .memory_run import Run


class Plain(SimpleNamespace):
    """A model with the train step of Keras."""

    train_step = keras.Model.train_step


class Fit:
    """A session of a ``fit`` with two batches an epoch, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, epochs: int = 3, steps: int | None = 2) -> None:
        self.now = 10.0
        monkeypatch.setattr(clock, "now", lambda: self.now)
        self.run = Run()
        self.model = SimpleNamespace(optimizer=keras.optimizers.SGD(0.1), stop_training=False)
        self._arguments = epochs, steps
        self.session = self.make()
        self.session.begin()

    def make(self, before: FitSession | None = None) -> FitSession:
        return FitSession(lambda: self.model, self.run, *self._arguments, before, is_fit_wrapped=True)  # type: ignore[arg-type]

    def batch(self, loss: float, at: float) -> None:
        if self.session.rates.due:
            self.session.begin_batch()
        self.model.optimizer.iterations.assign_add(1)
        self.session.batches.add({"loss": loss})
        self.now = at

    def all(self, kind: type) -> list[Any]:
        return [event for event in self.run.events if isinstance(event, kind)]

    def phases(self) -> list[tuple[Phase, float]]:
        return [(event.phase, event.time) for event in self.all(PhaseChanged)]


def test_two_epochs_with_a_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    session = fit.session
    session.begin_epoch(0)
    fit.batch(3.0, at=12.0)
    assert not session.epoch_complete
    session.update()
    fit.batch(2.0, at=14.0)
    assert session.epoch_complete
    session.update()
    assert not session.epoch_complete
    fit.now = 15.0
    session.begin_validation()
    fit.now = 18.0
    session.end_validation()
    fit.now = 20.0
    session.end_epoch({"loss": 2.5, "val_loss": 1.5})
    assert session.metrics == {"loss": 2.5, "validation_loss": 1.5}
    fit.now = 21.0
    session.begin_epoch(1)
    fit.batch(1.0, at=22.0)
    fit.batch(0.5, at=23.0)
    session.update()
    fit.now = 25.0
    session.end_epoch({"loss": 0.75})
    fit.now = 26.0
    session.end()

    chunks = [(first, began, ended, series["loss"]) for first, began, ended, series in fit.run.chunks]
    assert chunks == [(0, 10.0, 12.0, [3.0]), (1, 12.0, 14.0, [2.0]), (2, 21.0, 23.0, [1.0, 0.5])]
    assert fit.all(EpochEnded) == [
        EpochEnded(time=20.0, epoch=1, step=2, metrics={"loss": 2.5}, seconds=5.0),
        EpochEnded(time=25.0, epoch=2, step=4, metrics={"loss": 0.75}, seconds=4.0),
    ]
    assert fit.all(Validated) == [Validated(time=20.0, epoch=1, step=2, metrics={"loss": 1.5}, seconds=3.0)]
    assert fit.phases() == [
        (Phase.TRACING, 10.0),
        (Phase.TRAINING, 12.0),
        (Phase.VALIDATING, 15.0),
        (Phase.TRAINING, 18.0),
    ]
    (built, *again) = fit.all(ModelBuilt)
    assert len(again) == 2  # after each epoch, as the number of parameters is unknown still
    assert (built.epochs, built.steps_per_epoch, built.series) == (3, 2, ("loss",))
    assert [(event.step, event.learning_rate) for event in fit.all(LearningRateChanged)] == [(0, 0.1)]
    (ended,) = fit.all(RunEnded)
    assert (ended.outcome, ended.reason, ended.time, ended.seconds) == (Outcome.FINISHED, "", 26.0, 16.0)
    assert (ended.steps, ended.epochs, ended.metrics) == (4, 2, {"loss": 0.75})
    assert ended.steps_per_second == 3 / 4
    assert session.written == 4
    assert not fit.all(Warned)


def test_an_epoch_of_unknown_length_is_counted_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, steps=None)
    for epoch in range(2):
        fit.session.begin_epoch(epoch)
        for loss in (3.0, 2.0, 1.0):
            fit.batch(loss, at=fit.now + 1.0)
        assert fit.session.epoch_complete == bool(epoch)
        fit.session.end_epoch({"loss": 2.0})
    fit.session.end()

    assert [event.step for event in fit.all(EpochEnded)] == [3, 6]
    assert [event.steps_per_epoch for event in fit.all(ModelBuilt)][:2] == [None, 3]
    assert fit.phases() == [(Phase.TRACING, 10.0), (Phase.TRAINING, 13.0)]
    assert fit.all(RunEnded)[0].steps_per_second == 1.0


def test_a_loss_that_is_not_finite_is_told_once_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    for epoch in range(2):
        fit.session.begin_epoch(epoch)
        fit.batch(1.0, at=11.0)
        fit.batch(1.0 if not epoch else math.nan, at=12.0)
        fit.session.end_epoch({"loss": 1.0})
    fit.session.begin_epoch(2)
    fit.batch(math.inf, at=13.0)
    fit.session.end_epoch({"loss": 1.0})
    fit.session.end()

    assert [event.message for event in fit.all(Warned)] == [
        "the loss of step 3 is NaN or infinite: try a lower learning rate"
    ]


def test_a_stopped_epoch_is_none(monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]) -> None:
    fit = Fit(monkeypatch)
    fit.session.begin_epoch(0)
    fit.batch(1.0, at=11.0)
    fit.session.update()
    fit.run.pending = [stop := Command(1, 1.0, "me@host", "stop")]
    wait_until(lambda: fit.session._commands._mailbox.has_pending, "the command")
    fit.batch(1.0, at=12.0)
    fit.session.update()
    fit.run.pending = []
    fit.session.end_epoch({"loss": 1.0, "val_loss": 2.0, "words": "none"})
    fit.session.end()

    assert fit.model.stop_training
    assert [event.message for event in fit.all(Warned)] == ["the metric words is not recorded: it is not a number"]
    assert not fit.all(EpochEnded)
    assert [event.metrics for event in fit.all(Validated)] == [{"loss": 2.0}]
    (ended,) = fit.all(RunEnded)
    assert (ended.outcome, ended.reason) == (Outcome.STOPPED, stop.origin)


def test_an_exception_ends_the_run_with_the_steps_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    fit.session.begin_epoch(0)
    fit.batch(1.0, at=11.0)
    fit.session.end_by_exception(ValueError("oh no"))
    assert fit.session.leave()

    (ended,) = fit.all(RunEnded)
    assert (ended.outcome, ended.reason, ended.steps) == (Outcome.FAILED, "ValueError: oh no", 1)
    assert [chunk[3]["loss"] for chunk in fit.run.chunks] == [[1.0]]
    assert ended.steps_per_second == 0.0


def test_another_fit_has_the_names_and_metrics_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    fit.session.begin_epoch(0)
    fit.batch(1.0, at=11.0)
    fit.session.end_epoch({"loss": 1.0})
    fit.session.end()
    again = fit.make(fit.session)

    assert again.names is fit.session.names
    assert again.metrics == {"loss": 1.0}
    assert again.metrics is not fit.session.metrics


def test_the_next_update_is_due_after_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    assert fit.session.due == 0.0
    monkeypatch.setattr(fit_session, "time", Mock(wraps=time, monotonic=lambda: 100.0))
    fit.session.update()
    monkeypatch.undo()

    assert fit.session.due == 100.5
    assert fit.session.leave()


def test_an_end_that_is_not_written_yet_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(fit_session, "warn", told.append)
    fit = Fit(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(fit.session._recorder, "finish", lambda *_: False)
        fit.session.end()

    assert told == ["the end of the run is not written yet; the disk may be busy"]
    assert fit.session.leave()


def test_what_no_epochs_end_has_written_is_written_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    fit.session.begin_epoch(0)
    fit.batch(1.0, at=11.0)
    fit.session.end()

    assert [chunk[3]["loss"] for chunk in fit.run.chunks] == [[1.0]]


def test_what_is_no_mean_of_a_batch_is_told_as_running_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch)
    fit.model = Plain(**vars(fit.model))
    fit.session.begin_epoch(0)
    for loss in (2.0, 1.0):
        fit.batch(loss, at=12.0)
    fit.session.end()

    assert [chunk[3]["running_loss"] for chunk in fit.run.chunks] == [[2.0, 1.0]]
    assert [event.message for event in fit.all(Warned)] == [
        "loss is recorded as running_loss, Keras' running mean over the epoch"
    ]


def test_in_an_epoch_that_an_exception_ends_no_batch_is_taken_for_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, steps=10)
    mean = keras.metrics.Mean(name="loss")
    fit.model = Plain(**vars(fit.model), metrics=[mean])
    fit.session.begin_epoch(0)
    for weight in (8, 8, 5):
        mean.update_state(weight / 2.0, sample_weight=weight)
        fit.batch(float(mean.result()), at=fit.now + 1.0)
        if fit.now == 11.0:
            fit.session.update()
    fit.session.end_by_exception(KeyboardInterrupt())
    assert fit.session.leave()

    assert {name for chunk in fit.run.chunks for name in chunk[3]} - {"learning_rate"} == {"running_loss"}


def test_a_fit_that_its_frames_have_left_is_ended_once_that_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    def ending(*, left: bool, exception: BaseException | None = None) -> tuple[Fit, SimpleNamespace]:
        fit = Fit(monkeypatch)
        watch = SimpleNamespace(left=left, exception=exception, release=lambda: released.append(fit))
        fit.session._watch = watch  # type: ignore[assignment]
        return fit, watch

    released: list[Fit] = []
    fit, watch = ending(left=False)
    assert fit.session._end_if_aborted(False) is None
    watch.left = True
    assert fit.session._end_if_aborted(False) is None
    assert not released
    ended = fit.session._end_if_aborted(False)
    assert ended
    assert (ended.outcome, released) == (Outcome.FAILED, [fit])

    raised, _ = ending(left=True, exception=ValueError("oh no"))
    told = raised.session._end_if_aborted(False)
    assert told
    assert told.reason == "ValueError: oh no"

    gone, _ = ending(left=False)
    assert gone.session._end_if_aborted(True)
    for each in (fit, raised, gone):
        assert each.session.leave()
