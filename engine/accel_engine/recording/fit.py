"""One call of ``fit``, told to a run."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.events import (
    EpochEnded,
    LearningRateChanged,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
)
from accel_engine.launch import versions
from accel_engine.recording import describing
from accel_engine.recording.batches import RUNNING, Batches, Values
from accel_engine.recording.gauges import learning_rate
from accel_engine.recording.obeying import Obeying
from accel_engine.recording.scribe import Scribe, Steps
from accel_engine.recording.script import Watch
from accel_engine.training.control import Mailbox

LOOK_SECONDS = 0.5
"""How often metrics are read, commands obeyed and steps handed over to be written."""

VALIDATION = "val_"
"""What Keras puts before what validation measured."""


class Fit:
    """Tells one ``fit`` to a run, from its beginning to its end, whichever that is.

    Args:
        model: Gives what is in training, as the callback has it: with JAX, asking brings its variables up to date.
        directory: The run's.
        values: What is known of a plan's fields.
        epochs: That ``fit`` goes up to, by Keras' count.
        steps: Of an epoch; ``None`` where Keras does not know yet.
        before: The one before it in the same run.

    Attributes:
        batches: What Keras tells of each batch.
        due: When to look next, by ``time.monotonic()``.
        step: Steps taken in the run.
        epochs: Epochs ended in the run.
        metrics: The last means.
    """

    def __init__(
        self,
        model: Callable[[], Any],
        directory: Path,
        values: dict[str, Any],
        epochs: int,
        steps: int | None,
        before: "Fit | None",
    ) -> None:
        self._model = model
        self.batches = Batches(model().steps_per_execution)
        self.due = 0.0
        self.step: int = before.written if before else 0
        self.epochs: int = before.epochs if before else 0
        self.metrics: dict[str, float] = dict(before.metrics) if before else {}
        self._last_epoch, self._total = epochs, 0
        self._steps = steps
        self._series: tuple[str, ...] = ()
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._warned: set[str] = set()
        self._validation_seconds = 0.0
        self._was_left = False
        self._began = self._since = self._epoch_began = time.time()
        self._watch = Watch()
        mailbox = Mailbox()
        started = RunStarted(
            time=self._began,
            run=directory.name,
            name=values["name"],
            plan=values,
            first_step=self.step,
            pid=os.getpid(),
            host=socket.gethostname(),
            versions=versions(),
        )
        self._scribe = Scribe(directory, started, mailbox, self._left)
        self._obeying = Obeying(mailbox, self._scribe.tell)

    def begin(self) -> None:
        """Begin the run, or go on with it.

        Raises:
            RunError: It cannot be written.
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
        self._first = self.step
        self._seconds: float | None = None
        self._since = self._epoch_began = time.time()
        self._rate_due = True

    def look(self, *, over: bool = False) -> None:
        """Hand the latest steps over, and do what was asked.

        Args:
            over: Whether the epoch's last batch was told.
        """
        if self._record(over=over):
            self._obeying.obey(self._model(), self.step)
            self._since = time.time()
        self.due = time.monotonic() + LOOK_SECONDS

    def begin_validation(self) -> None:
        """Take the epoch's last steps, whose means validation forgets."""
        self.look(over=True)
        self._seconds = time.time() - self._epoch_began
        self._since = time.time()
        self._enter(Phase.VALIDATING)

    def end_validation(self) -> None:
        """Note how long it took; what it found is told at the epoch's end."""
        self._validation_seconds = time.time() - self._since
        self._enter(Phase.TRAINING)

    def end_epoch(self, logs: Mapping[str, Any]) -> None:
        """Take the epoch's means, and validation's."""
        self.look(over=True)
        seconds = time.time() - self._epoch_began if self._seconds is None else self._seconds
        numbers = {name: value for name, value in logs.items() if isinstance(value, float)}
        found = {name.removeprefix(VALIDATION): numbers[name] for name in numbers if name.startswith(VALIDATION)}
        means = {name: numbers[name] for name in numbers if not name.startswith(VALIDATION) and name != "learning_rate"}
        self.epochs += 1
        now, epoch, step = time.time(), self.epochs, self.step
        if not self._obeying.stopped:  # else this is no whole epoch
            self._scribe.tell(EpochEnded(time=now, epoch=epoch, step=step, metrics=means, seconds=seconds))
            if self._steps is None:
                self._steps = self.step - self._first
                self._tell_built()
        if found:
            took = self._validation_seconds
            self._scribe.tell(Validated(time=now, epoch=epoch, step=step, metrics=found, seconds=took))
        self.metrics = means | {f"validation_{name}": value for name, value in found.items()}

    def end(self) -> None:
        """End the run as ``fit`` ends."""
        self.look(over=True)
        stopped = self._obeying.stopped
        self._finish(self._result(Outcome.STOPPED if stopped else Outcome.FINISHED, stopped))

    def end_without_word(self) -> None:
        """End the run after an exception, if it has not ended."""
        self._finish(None)

    def _finish(self, ended: RunEnded | None) -> None:
        self._scribe.finish(ended)
        self._watch.forget()

    def _left(self, sure: bool) -> RunEnded | None:
        """The run's end if an exception went through ``fit``; the recording thread asks."""
        if not sure and not self._watch.left:
            return None
        if not sure and self._watch.exception is None and not self._was_left:
            self._was_left = True  # on its way to who handles it an exception is not seen: look once more
            return None
        ended = self._result_of_exception()
        self._watch.forget()
        return ended

    def _record(self, *, over: bool) -> bool:
        """Hand the latest steps over; tell whether there are any."""
        now, model = time.time(), self._model()
        # Also where the last batch falls into a look by chance: a smaller one is told by its place alone.
        series = self.batches.take(model, over=over or self.batches.has(self._steps))
        if not series:
            return False
        taken = len(next(iter(series.values())))
        self._scribe.tell(Steps(self._since, now, series))
        if not self._series:
            self._series = tuple(series)
            self._tell_built()
            self._enter(Phase.TRAINING)
        else:  # the first was traced
            self._timed_steps += taken
            self._timed_seconds += now - self._since
        if self._rate_due:
            self._rate_due = False
            rate = learning_rate(model)
            if rate is not None and rate != self._obeying.learning_rate:
                self._obeying.learning_rate = rate
                self._scribe.tell(LearningRateChanged(time=now, step=self._first, learning_rate=rate))
        self._warn(series)
        self.step += taken
        return True

    def _warn(self, series: dict[str, Values]) -> None:
        for name, values in series.items():
            if name.startswith(RUNNING):
                what = name.removeprefix(RUNNING)
                self._warn_once(name, f"of {what} only the mean since the epoch began is known: it is {name} here")
            if name.endswith("loss") and not np.isfinite(values).all():
                step = self.step + int(np.argmax(~np.isfinite(values)))
                self._warn_once("", f"the {name} of step {step} is not a number: try a lower learning rate")

    def _warn_once(self, about: str, message: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            self._scribe.tell(Warned(time=time.time(), message=message))

    def _tell_built(self) -> None:
        self._scribe.tell(
            describing.built(
                self._model(),
                epochs=self._total,
                steps=self._steps,
                batch=self.batches.batch(self._model()),
                series=self._series,
            )
        )

    def _enter(self, phase: Phase) -> None:
        self._scribe.tell(PhaseChanged(time=time.time(), phase=phase))

    def _result_of_exception(self) -> RunEnded:
        self._record(over=False)
        match self._watch.exception:
            case KeyboardInterrupt():
                return self._result(Outcome.STOPPED, "interrupted at the keyboard")
            case None:
                return self._result(Outcome.FAILED, "an exception, or an exit of the script's own, ended fit")
            case error:
                words = " ".join(str(error).split())[:500]
                return self._result(Outcome.FAILED, f"{type(error).__name__}: {words}")

    def _result(self, outcome: Outcome, reason: str) -> RunEnded:
        return RunEnded(
            time=time.time(),
            outcome=outcome,
            steps=self.step,
            epochs=self.epochs,
            seconds=time.time() - self._began,
            steps_per_second=self._timed_steps / self._timed_seconds if self._timed_seconds else 0.0,
            metrics=self.metrics,
            reason=reason,
        )
