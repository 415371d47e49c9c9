"""One call of ``fit``, told to a run."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine import clock
from accel_engine.events import (
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
)
from accel_engine.launch import versions
from accel_engine.recording import logs, model_description
from accel_engine.recording.batch_series import RUNNING, BatchSeries
from accel_engine.recording.error_guard import value_or_none, warn
from accel_engine.recording.fit_calls import outcome_of
from accel_engine.recording.fit_command_handler import FitCommandHandler
from accel_engine.recording.learning_rates import LearningRates, Rates
from accel_engine.recording.recorder_thread import RecorderThread
from accel_engine.recording.running_means import Values
from accel_engine.recording.script import ScriptWatch
from accel_engine.recording.write_queue import Steps
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.run.series_names import SeriesNames
from accel_engine.training.command_mailbox import CommandMailbox

LOOK_SECONDS = 0.5
"""How often metrics are read, commands obeyed and steps handed over to be written."""


class FitSession:
    """Tells one ``fit`` to a run, from its beginning to its end, whichever that is.

    Args:
        model: Gives what is in training, as the callback has it: with JAX, asking brings its variables up to date.
        make: Gives the run's directory, and makes it where there is none; called in another thread.
        values: What is known of a plan's fields.
        epochs: That ``fit`` goes up to, by Keras' count.
        steps: Of an epoch; ``None`` where Keras does not know yet.
        before: The one before it in the same run.
        observed: Whether :meth:`end_by_exception` is called where an exception ends ``fit``.

    Attributes:
        names: Of the series of what Keras tells; the same in all of a run.
        batches: What Keras tells of each batch.
        rates: The learning rates of the steps.
        due: When to look next, by ``time.monotonic()``.
        step: Steps taken in the run.
        epochs: Epochs ended in the run.
        metrics: The last means.
    """

    def __init__(
        self,
        model: Callable[[], Any],
        make: Callable[[], Path],
        values: dict[str, Any],
        epochs: int,
        steps: int | None,
        before: "FitSession | None",
        *,
        observed: bool,
    ) -> None:
        self._model = model
        self.names: SeriesNames = before.names if before else SeriesNames()
        self.batches = BatchSeries(value_or_none(lambda: int(model().steps_per_execution)) or 1, steps, self.names)
        self.rates = LearningRates(model())
        self.names.reserve(LEARNING_RATE, *self.rates.names)
        self.due = 0.0
        self.step: int = before.written if before else 0
        self.epochs: int = before.epochs if before else 0
        self.metrics: dict[str, float] = dict(before.metrics) if before else {}
        self._last_epoch, self._total = epochs, 0
        self._steps = steps
        self._first = self.step
        self._built: ModelBuilt | None = None
        self._traced: tuple[float, float] | None = None
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._warned: set[str] = set()
        self._seconds: float | None = None
        self._validation_seconds = 0.0
        self._rate_due = True
        self._was_left = False
        self._began = self._since = self._epoch_began = clock.now()
        self._watch = None if observed else ScriptWatch()
        mailbox = CommandMailbox()
        started = RunStarted(
            time=self._began,
            run="",
            name=values["name"],
            plan=values,
            first_step=self.step,
            pid=os.getpid(),
            host=socket.gethostname(),
            versions=versions(),
        )
        self._scribe = RecorderThread(make, started, mailbox, self._left)
        self._obeying = FitCommandHandler(mailbox, self._scribe)

    def begin(self) -> None:
        """Begin the run, or go on with it.

        Raises:
            Exception: It cannot be written.
        """
        self._scribe.begin()
        self._enter(Phase.TRACING)

    @property
    def written(self) -> int:
        """Steps of the run that are written: an interrupt may come before those that were told are counted here."""
        return self._scribe.steps

    def begin_epoch(self, epoch: int) -> None:
        """Begin an epoch, counted from 0 by Keras."""
        self._total = self._total or self.epochs + self._last_epoch - epoch
        self.batches.begin_epoch()
        self.rates.begin_epoch()
        self._first = self.step
        self._seconds = None
        self._since = self._epoch_began = clock.now()
        self._rate_due = True

    def begin_batch(self) -> None:
        """Read the learning rate before a batch; called where :attr:`rates` has it due."""
        self._model()  # with JAX, the variables are brought up to date
        self.rates.read(self.batches.waiting)

    @property
    def epoch_told(self) -> bool:
        """Whether the epoch's last batch was told since the last look."""
        return self.batches.ends(self._steps)

    def look(self, *, over: bool = False) -> None:
        """Hand the latest steps over, and do what was asked.

        Args:
            over: Whether the epoch's last batch was told.

        Raises:
            Exception: The run can be written no more.
        """
        self._scribe.check()
        if self._record(over=over):
            rate = self._obeying.learning_rate
            self._obeying.obey(self._model(), self.step)
            self.rates.due = self.rates.due or self._obeying.learning_rate != rate
            self._since = clock.now()
        self.due = time.monotonic() + LOOK_SECONDS

    def begin_validation(self) -> None:
        """Take the epoch's last steps, whose means validation forgets."""
        self.look(over=True)
        self._seconds = clock.now() - self._epoch_began
        self._since = clock.now()
        self._enter(Phase.VALIDATING)

    def end_validation(self) -> None:
        """Note how long it took; what it found is told at the epoch's end."""
        self._validation_seconds = clock.now() - self._since
        self._enter(Phase.TRAINING)

    def end_epoch(self, told: Mapping[str, Any]) -> None:
        """Take the epoch's means, and validation's."""
        self.look(over=True)
        seconds = clock.now() - self._epoch_began if self._seconds is None else self._seconds
        means, found = logs.of_training(told, self.names), logs.of_validation(told, self.names)
        self._tell_remarks()
        self.epochs += 1
        now, epoch, step = clock.now(), self.epochs, self.step
        if not self._obeying.stopped:  # else this is no whole epoch
            self._scribe.tell(EpochEnded(time=now, epoch=epoch, step=step, metrics=means, seconds=seconds))
            unknown, self._steps = self._steps is None, self._steps or self.step - self._first
            if self._built and (unknown or self._built.parameters is None):
                self._tell_built(self._built.series)
        if found:
            took = self._validation_seconds
            self._scribe.tell(Validated(time=now, epoch=epoch, step=step, metrics=found, seconds=took))
        self.metrics = means | {f"validation_{name}": value for name, value in found.items()}

    def end(self) -> None:
        """End the run as ``fit`` ends.

        Raises:
            Exception: It could not be written.
        """
        self.look(over=True)
        stopped = self._obeying.stopped
        done = self._scribe.finish(self._result(Outcome.STOPPED if stopped else Outcome.FINISHED, stopped))
        self._forget()
        self._scribe.check()
        if not done:
            warn("the end of the run is not written yet: is the disk busy?")

    def end_by_exception(self, error: BaseException) -> None:
        """End the run as an exception ends ``fit``, without waiting until that is written."""
        self._scribe.tell(self._result_of(error))

    def leave(self) -> bool:
        """End the run if it has not ended; tell whether it is written to its end."""
        done = self._scribe.finish(None)
        self._forget()
        return done

    def fail(self, error: Exception) -> None:
        """End the recording, not the training, because something here has failed."""
        self._scribe.tell(error)
        self._forget()

    def _forget(self) -> None:
        if self._watch:
            self._watch.forget()

    def _left(self, sure: bool) -> RunEnded | None:
        """The run's end if an exception went through ``fit``; the recording thread asks."""
        left = self._watch is not None and self._watch.left
        if not sure and not left:
            return None
        exception = self._watch.exception if self._watch else None
        if not sure and exception is None and not self._was_left:
            self._was_left = True  # on its way to who handles it an exception is not seen: look once more
            return None
        ended = self._result_of(exception)
        self._forget()
        return ended

    def _record(self, *, over: bool, last: bool = False) -> bool:
        """Hand the latest steps over; tell whether there are any."""
        now, model = clock.now(), self._model()
        if not self.batches.waiting:
            return False
        # Also where the last batch falls into a look by chance: a smaller one is told by its place alone.
        series = self.batches.take(model, over=over or self.batches.has(self._steps), last=last)
        if not series:  # the first batch alone, with which the graph was traced
            self._traced = (self._since, now)
            self._enter(Phase.TRAINING)
            return True
        taken = len(next(iter(series.values())))
        rates = value_or_none(lambda: self.rates.take(model, taken)) or {}
        self._hand_over(now, taken, {**series, **rates})
        if not self._built:
            self._tell_built(tuple(series))
        self._tell_rate(now, rates)
        self._tell_remarks()
        self._warn(series)
        self.step += taken
        return True

    def _hand_over(self, now: float, taken: int, series: dict[str, Rates]) -> None:
        """Have steps written: the first, which takes as long as tracing does, by itself."""
        first = 0
        if self._traced:
            (began, ended), self._traced = self._traced, None
            first = min(self.batches.execution, taken)
            self._scribe.tell(Steps(began, ended, first, _part(series, 0, first)))
        elif not self._built:
            first = taken
            self._scribe.tell(Steps(self._since, now, taken, series))
            self._enter(Phase.TRAINING)
        if taken > first:
            self._scribe.tell(Steps(self._since, now, taken - first, _part(series, first, taken)))
            self._timed_steps += taken - first
            self._timed_seconds += now - self._since

    def _tell_rate(self, now: float, rates: Mapping[str, Rates]) -> None:
        """Tell a rate that is not a schedule's where it is another than in the epoch before."""
        due, self._rate_due = self._rate_due, False
        values = rates.get(LEARNING_RATE)
        if due and isinstance(values, np.ndarray) and np.isfinite(values[0]):
            rate = float(f"{values[0]:.7g}")  # float32, so no more digits than it has
            if rate != self._obeying.learning_rate:
                self._obeying.learning_rate = rate
                self._scribe.tell(LearningRateChanged(time=now, step=self.step, learning_rate=rate))

    def _tell_remarks(self) -> None:
        for remark in self.names.take_notes():
            self._scribe.tell(Warned(time=clock.now(), message=remark))

    def _warn(self, series: Mapping[str, Values]) -> None:
        for name, values in series.items():
            if name.startswith(RUNNING):
                what = name.removeprefix(RUNNING)
                self._warn_once(name, f"of {what} only the mean since the epoch began is known: it is {name} here")
            elif name in self.batches.missing:
                self._warn_once(name, f"{name} is missing where Keras' mean of the epoch does not tell single batches")
            elif name.endswith("loss") and not np.isfinite(values).all():
                step = self.step + int(np.argmax(~np.isfinite(values)))
                self._warn_once("", f"the {name} of step {step} is not a number: try a lower learning rate")

    def _warn_once(self, about: str, message: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            self._scribe.tell(Warned(time=clock.now(), message=message))

    def _tell_built(self, series: tuple[str, ...]) -> None:
        model = self._model()
        self._built = model_description.built(
            model, epochs=self._total, steps=self._steps, batch=self.batches.batch(model), series=series
        )
        self._scribe.tell(self._built)

    def _enter(self, phase: Phase) -> None:
        self._scribe.tell(PhaseChanged(time=clock.now(), phase=phase))

    def _result_of(self, error: BaseException | None) -> RunEnded:
        value_or_none(lambda: self._record(over=False, last=True))
        return self._result(*outcome_of(error))

    def _result(self, outcome: Outcome, reason: str) -> RunEnded:
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self.step,
            epochs=self.epochs,
            seconds=clock.now() - self._began,
            steps_per_second=self._timed_steps / self._timed_seconds if self._timed_seconds else 0.0,
            metrics=self.metrics,
            reason=reason,
        )


def _part(series: Mapping[str, Rates], first: int, last: int) -> dict[str, Rates]:
    """What was measured at some of the steps."""

    def cut(values: Rates) -> Rates:
        return values[first:last] if isinstance(values, np.ndarray) else lambda: values()[first:last]

    return {name: cut(values) for name, values in series.items()}
