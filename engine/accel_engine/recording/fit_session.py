"""Records one call of ``fit`` to a run."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from accel_engine import clock, events
from accel_engine.recording import keras_logs, model_description
from accel_engine.recording.batch_series import RUNNING, BatchSeries
from accel_engine.recording.error_guard import value_or_none, warn
from accel_engine.recording.fit_command_handler import FitCommandHandler
from accel_engine.recording.learning_rates import LearningRates, StepRates
from accel_engine.recording.recorder_thread import PendingSteps, RecorderThread
from accel_engine.recording.run_link import RunLink
from accel_engine.recording.running_means import Values
from accel_engine.recording.script import ScriptWatch, outcome_of
from accel_engine.run.store.series_names import LEARNING_RATE, SeriesNames, rounded_rate
from accel_engine.training.commands.command_mailbox import CommandMailbox

UPDATE_SECONDS = 0.5
"""Interval of reading metrics, handling commands and queueing steps."""


class FitSession:
    """Records one ``fit``, until it returns or raises.

    Args:
        model: Returns the model in training; with JAX, this updates its variables.
        link: Where to send.
        epochs: The ``epochs`` argument of ``fit``.
        steps: Steps per epoch; ``None`` if Keras does not know yet.
        previous_session: The previous session of the same run.
        is_fit_wrapped: Whether ``fit`` is wrapped, so that an exception of it calls :meth:`end_by_exception`.

    Attributes:
        names: Names of the series; the same in all of a run.
        batches: The batch logs.
        rates: The learning rates of the steps.
        due: When to update next, by ``time.monotonic()``.
        step: Steps taken in the run.
        epochs: Epochs ended in the run.
        metrics: The means of the last epoch.
    """

    def __init__(
        self,
        model: Callable[[], Any],
        link: RunLink,
        epochs: int,
        steps: int | None,
        previous_session: "FitSession | None",
        *,
        is_fit_wrapped: bool,
    ) -> None:
        self._model = model
        self.names: SeriesNames = previous_session.names if previous_session else SeriesNames()
        self.batches = BatchSeries(value_or_none(lambda: int(model().steps_per_execution)) or 1, steps, self.names)
        self.rates = LearningRates(model())
        self.names.reserve(LEARNING_RATE, *self.rates.names)
        self.due = 0.0
        self.step = link.step
        self.epochs = link.epochs
        self.metrics: dict[str, float] = dict(previous_session.metrics) if previous_session else {}
        self._last_epoch, self._total_epochs = epochs, 0
        self._steps = steps
        self._first = self.step
        self._built: events.ModelBuilt | None = None
        self._traced: tuple[float, float] | None = None
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._warned: set[str] = set()
        self._epoch_seconds: float | None = None
        self._validation_seconds = 0.0
        self._rate_due = True
        self._was_aborted = False
        self._began = self._chunk_started = self._epoch_began = clock.now()
        self._watch = None if is_fit_wrapped else ScriptWatch()
        mailbox = CommandMailbox()
        self._most = self.step
        self._recorder = RecorderThread(link, mailbox, self._end_if_aborted, taken=self._taken)
        self._commands = FitCommandHandler(mailbox, self._recorder)

    def begin(self, faults: Iterable[str] = ()) -> None:
        """Start or continue the run.

        Args:
            faults: What Keras does otherwise than the call of ``fit`` says.

        Raises:
            RuntimeError: There are too many threads.
        """
        self._recorder.begin()
        for fault in faults:
            self._warn_once(fault, fault)
        self._enter_phase(events.Phase.TRACING)

    @property
    def written(self) -> int:
        """Number of sent steps of the run; after an interrupt, ``step`` may be smaller."""
        return self._recorder.steps

    def begin_epoch(self, epoch: int) -> None:
        """Start an epoch, counted from 0 by Keras."""
        self._total_epochs = self._total_epochs or self.epochs + self._last_epoch - epoch
        self.batches.begin_epoch()
        self.rates.begin_epoch()
        self._first = self.step
        self._epoch_seconds = None
        self._chunk_started = self._epoch_began = clock.now()
        self._rate_due = True

    def begin_batch(self) -> None:
        """Read the learning rate before a batch; called if ``rates.due``."""
        self._model()  # with JAX, this updates the variables
        self.rates.read(self.batches.pending_steps)

    @property
    def epoch_complete(self) -> bool:
        """Whether the epoch's last batch was added since the last update."""
        return self.batches.just_completed_epoch(self._steps)

    def update(self, *, epoch_ended: bool = False) -> None:
        """Queue the latest steps, and handle commands.

        Args:
            epoch_ended: Whether the epoch has ended.

        Raises:
            Exception: The run can no longer be written.
        """
        self._recorder.check()
        if self._record(epoch_ended=epoch_ended):
            rate = self._commands.learning_rate
            self._commands.handle(self._model(), self.step)
            self.rates.due = self.rates.due or self._commands.learning_rate != rate
            self._chunk_started = clock.now()
        self.due = time.monotonic() + UPDATE_SECONDS

    def begin_validation(self) -> None:
        """Record the epoch's last steps, as validation resets the metrics."""
        self.update(epoch_ended=True)
        self._epoch_seconds = clock.now() - self._epoch_began
        self._chunk_started = clock.now()
        self._enter_phase(events.Phase.VALIDATING)

    def end_validation(self) -> None:
        """Measure the validation time; its metrics are logged at the epoch's end."""
        self._validation_seconds = clock.now() - self._chunk_started
        self._enter_phase(events.Phase.TRAINING)

    def end_epoch(self, epoch_logs: Mapping[str, Any]) -> None:
        """Record the epoch's means, and validation's."""
        self.update(epoch_ended=True)
        seconds = clock.now() - self._epoch_began if self._epoch_seconds is None else self._epoch_seconds
        means = keras_logs.training_metrics(epoch_logs, self.names)
        validated = keras_logs.validation_metrics(epoch_logs, self.names)
        self._report_notes()
        self.epochs += 1
        now, epoch, step = clock.now(), self.epochs, self.step
        if not self._commands.stopped:  # else the epoch is incomplete
            self._recorder.put(events.EpochEnded(time=now, epoch=epoch, step=step, metrics=means, seconds=seconds))
            unknown, self._steps = self._steps is None, self._steps or self.step - self._first
            if self._built and (unknown or self._built.parameters is None):
                self._report_model(self._built.series)
        if validated:
            seconds = self._validation_seconds
            self._recorder.put(events.Validated(time=now, epoch=epoch, step=step, metrics=validated, seconds=seconds))
        self.metrics = means | {f"validation_{name}": value for name, value in validated.items()}

    def end(self) -> None:
        """End the run when ``fit`` returns.

        Raises:
            Exception: The end could not be written.
        """
        self.update(epoch_ended=True)
        stopped = self._commands.stopped
        done = self._recorder.finish(
            self._result(events.Outcome.STOPPED if stopped else events.Outcome.FINISHED, stopped)
        )
        self._release_watch()
        self._recorder.check()
        if not done:
            warn("the end of the run is not written yet; the disk may be busy")

    def end_by_exception(self, error: BaseException) -> None:
        """End the run when ``fit`` raises, without waiting for the disk."""
        self._recorder.put(self._result_of(error))

    def leave(self) -> bool:
        """End the run if it has not ended; return whether all of it is written."""
        done = self._recorder.finish(None)
        self._release_watch()
        return done

    def fail(self, error: Exception) -> None:
        """End the recording, not the training, after an error of the recorder."""
        self._recorder.put(error)
        self._release_watch()

    def _release_watch(self) -> None:
        if self._watch:
            self._watch.release()

    def _end_if_aborted(self, certain: bool) -> events.RunEnded | None:
        """The run's end if ``fit`` was left by an exception; called by the recorder thread."""
        aborted = self._watch is not None and self._watch.left
        if not certain and not aborted:
            return None
        exception = self._watch.exception if self._watch else None
        if not certain and exception is None and not self._was_aborted:
            self._was_aborted = True  # an exception is invisible until it is handled: check once more
            return None
        ended = self._result_of(exception)
        self._release_watch()
        return ended

    def _taken(self) -> int:
        """The steps taken so far; called by the recorder thread, also while they are being queued."""
        self._most = max(self._most, self.step + self.batches.pending_steps)
        return self._most

    def _record(self, *, epoch_ended: bool, fit_ended: bool = False) -> bool:
        """Queue the latest steps; return whether there are any."""
        now, model = clock.now(), self._model()
        if not self.batches.pending_steps:
            return False
        self._taken()
        # Also if this update happens to include the last batch: only its position tells that it may be smaller.
        series = self.batches.take(
            model, epoch_ended=epoch_ended or self.batches.has_all_batches(self._steps), fit_ended=fit_ended
        )
        if not series:  # only the first batch, which traced the graph
            self._traced = (self._chunk_started, now)
            self._enter_phase(events.Phase.TRAINING)
            return True
        taken = len(next(iter(series.values())))
        rates = value_or_none(lambda: self.rates.take(model, taken)) or {}
        self._queue_steps(now, taken, {**series, **rates})
        if not self._built:
            self._report_model(tuple(series))
        self._report_rate(now, rates)
        self._report_notes()
        self._warn(series)
        self.step += taken
        return True

    def _queue_steps(self, now: float, taken: int, series: dict[str, StepRates]) -> None:
        """Queue steps; the first, which includes tracing, as a separate chunk."""
        first = 0
        if self._traced:
            (began, ended), self._traced = self._traced, None
            first = min(self.batches.execution, taken)
            self._recorder.put(PendingSteps(began, ended, first, _slice(series, 0, first)))
        elif not self._built:
            first = taken
            self._recorder.put(PendingSteps(self._chunk_started, now, taken, series))
            self._enter_phase(events.Phase.TRAINING)
        if taken > first:
            self._recorder.put(PendingSteps(self._chunk_started, now, taken - first, _slice(series, first, taken)))
            self._timed_steps += taken - first
            self._timed_seconds += now - self._chunk_started

    def _report_rate(self, now: float, rates: Mapping[str, StepRates]) -> None:
        """Report a rate that is not a schedule's if it has changed since the previous epoch."""
        due, self._rate_due = self._rate_due, False
        values = rates.get(LEARNING_RATE)
        if due and isinstance(values, np.ndarray) and np.isfinite(values[0]):
            rate = rounded_rate(values[0])
            if rate != self._commands.learning_rate:
                self._commands.learning_rate = rate
                self._recorder.put(events.LearningRateChanged(time=now, step=self.step, learning_rate=rate))

    def _report_notes(self) -> None:
        for note in self.names.take_notes():
            self._recorder.put(events.Warned(time=clock.now(), message=note))

    def _warn(self, series: Mapping[str, Values]) -> None:
        for name, values in series.items():
            if name.startswith(RUNNING):
                metric = name.removeprefix(RUNNING)
                self._warn_once(name, f"{metric} is recorded as {name}, Keras' running mean over the epoch")
            elif name in self.batches.missing:
                self._warn_once(name, f"{name} has gaps: Keras' running mean does not give the value of every batch")
            elif name.endswith("loss") and not np.isfinite(values).all():
                step = self.step + int(np.argmax(~np.isfinite(values)))
                self._warn_once("", f"the {name} of step {step} is NaN or infinite: try a lower learning rate")

    def _warn_once(self, about: str, message: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            self._recorder.put(events.Warned(time=clock.now(), message=message))

    def _report_model(self, series: tuple[str, ...]) -> None:
        model = self._model()
        self._built = model_description.model_built(
            model, epochs=self._total_epochs, steps=self._steps, batch=self.batches.batch(model), series=series
        )
        self._recorder.put(self._built)

    def _enter_phase(self, phase: events.Phase) -> None:
        self._recorder.put(events.PhaseChanged(time=clock.now(), phase=phase))

    def _result_of(self, error: BaseException | None) -> events.RunEnded:
        value_or_none(lambda: self._record(epoch_ended=False, fit_ended=True))
        return self._result(*outcome_of(error))

    def _result(self, outcome: events.Outcome, reason: str) -> events.RunEnded:
        return events.RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self.step,
            epochs=self.epochs,
            seconds=clock.now() - self._began,
            steps_per_second=self._timed_steps / self._timed_seconds if self._timed_seconds else 0.0,
            metrics=self.metrics,
            reason=reason,
        )


def _slice(series: Mapping[str, StepRates], first: int, last: int) -> dict[str, StepRates]:
    def slice_of(values: StepRates) -> StepRates:
        return values[first:last] if isinstance(values, np.ndarray) else lambda: values()[first:last]

    return {name: slice_of(values) for name, values in series.items()}
