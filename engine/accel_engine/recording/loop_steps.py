"""Turns what a script's own training loop logs into steps, epochs and validations."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from accel_engine import clock
from accel_engine.errors import format_error
from accel_engine.events import EpochEnded, Event, Validated, Warned
from accel_engine.recording.recorder_thread import PendingSteps
from accel_engine.recording.value_snapshots import PLAIN, snapshot_array
from accel_engine.run.store.schema import MAX_STEP
from accel_engine.run.store.series_names import VALIDATION_PREFIX, SeriesNames, logged_metric
from accel_engine.run.store.step_rows import StepChunk, StepRow, chunks_of
from accel_engine.run.store.steps import rate_of

LoggedRow: TypeAlias = tuple[Any, float, Mapping[str, Any]]
"""A step, when it was logged, and values by name, both snapshots (:mod:`accel_engine.recording.value_snapshots`)."""

EPOCH = "epoch"
"""The name under which a script logs its epoch."""

MAX_JUMP = 10_000_000
"""Most steps that may be left out between two: a run has room for every step, also for those without a value."""

MAX_CALLS_PER_SECOND = 50_000
"""A script that logs more often trains nothing in between: it logs what it has."""


class LoopSteps:
    """The steps of one loop; used by the recorder thread only.

    Args:
        first_step: Steps of the run before the loop, whose own steps start at 0.
        epochs: Epochs of the run before the loop.

    Attributes:
        epochs: Epochs of the run that have ended.
        metrics: The means of the last epoch and the last validation.
    """

    def __init__(self, first_step: int, epochs: int) -> None:
        self.epochs = epochs
        self.metrics: dict[str, float] = {}
        self._before, self._epochs_before = first_step, epochs
        self._names = SeriesNames()
        self._scalars: dict[str, tuple[bool, str]] = {}
        self._warned: set[str] = set()
        self._warnings: list[str] = []
        self._step = first_step - 1
        self._rows: list[StepRow] = []
        self._written: StepRow | None = None
        self._began: tuple[int, float] | None = None
        self._calls = 0
        self._epoch: int | None = None
        self._counts_from_zero = False
        self._epoch_comes_last = False  # an epoch's number is logged after its steps
        self._epoch_began = clock.now()
        self._epoch_stop = first_step
        self._sums: dict[str, tuple[float, int]] = {}
        self._open: dict[str, tuple[float, int]] = {}  # sums that may be of the epoch whose number is logged next

    def items(self, logged: Sequence[LoggedRow]) -> Iterator[PendingSteps | Event]:
        """The items to write for logged rows.

        Values of the last step are merged; if it is written already, it is written again. A step that is not a whole
        number, or goes back, is left out with a warning.
        """
        for step, time, values in logged:
            number = self.step_of(step)
            if number is None:
                continue
            if number < self._step:
                self.warn_once(
                    "back",
                    f"step {number - self._before:,} is left out, as it comes after step "
                    f"{self._step - self._before:,}: steps must rise",
                )
                continue
            if number - self._step >= MAX_JUMP:
                self.warn_once(
                    "jump",
                    f"step {number - self._before:,} is left out, as it comes {MAX_JUMP:,} steps after the last or "
                    "more: count updates, not examples or tokens",
                )
                continue
            yield from self._add(number, time, values)
        yield from self._take_rows()

    def step_of(self, logged: Any) -> int | None:
        """The run's step for a logged one; ``None``, with a warning, if that is not a whole number from 0."""
        try:
            value = logged if type(logged) is int else snapshot_array(logged, "step").item()
            # The remainder of infinity is NaN.
            is_large = self._before + value >= MAX_STEP
            reason = "not whole" if value % 1 else "negative" if value < 0 else "too large" if is_large else ""
            if not reason:
                return self._before + int(value)
            problem = f"{value:,} is {reason}"
        except Exception as error:  # noqa: BLE001 (of the value's own library)
            reason = problem = format_error(error)
        self.warn_once(
            f"step {type(logged).__name__} {reason}",
            f"a step is left out, as a step is a whole number from 0: {problem}",
        )
        return None

    def end_epoch(self) -> Iterator[Event]:
        """End the epoch that is being logged, if there is one."""
        self._close_sums()
        yield from self._end_epoch()

    def _end_epoch(self) -> Iterator[Event]:
        if self._epoch is None or self._began is None:
            return
        means = {name: total / count for name, (total, count) in self._sums.items()}
        began, self._epoch_began = self._epoch_began, clock.now()
        self.epochs, self._epoch, self._sums = self._epoch, None, {}
        self.metrics = means | {
            name: value for name, value in self.metrics.items() if name.startswith(VALIDATION_PREFIX)
        }
        yield EpochEnded(
            time=self._epoch_began,
            epoch=self.epochs,
            step=self._epoch_stop,
            metrics=means,
            seconds=self._epoch_began - began,
        )

    def _close_sums(self) -> None:
        """Let all values so far belong to the epoch that is being logged."""
        for name, (total, count) in self._open.items():
            before, count_before = self._sums.get(name, (0.0, 0))
            self._sums[name] = before + total, count_before + count
        self._open, self._epoch_stop = {}, self._step + 1

    def take_warnings(self) -> list[Warned]:
        """The warnings since the last call."""
        messages, self._warnings = [*self._warnings, *self._names.take_notes()], []
        return [Warned(time=clock.now(), message=message) for message in messages]

    def warn_once(self, about: str, message: str) -> None:
        """Warn, unless there was a warning about the same before."""
        if about not in self._warned:
            self._warned.add(about)
            self._warnings.append(message)

    @property
    def steps_per_second(self) -> float:
        """Speed after the first logged step; 0 while it is unknown, and if calls are too frequent to be steps."""
        if not self._began or not self._written:
            return 0.0
        seconds = self._written.time - self._began[1]
        is_training = self._calls <= MAX_CALLS_PER_SECOND * seconds
        return (is_training and rate_of(self._written.step - self._began[0], seconds)) or 0.0

    def _add(self, step: int, time: float, values: Mapping[str, Any]) -> Iterator[PendingSteps | Event]:
        """Add the values of a step; the rows are written before an event that belongs after them."""
        epoch, series, validated = self._sorted(values)
        if step > self._step and not self._epoch_comes_last:
            self._close_sums()
        if epoch is not None and epoch != self._epoch:
            if self._epoch is None:
                self._epoch_comes_last = self._began is not None and self._began[0] < step
            yield from self._take_rows()
            yield from self._end_epoch()
            self._epoch = epoch
        self._step = step
        if series:
            self._add_row(step, time, series)
        if epoch is not None:
            self._close_sums()
        if validated:
            yield from self._take_rows()
            self.metrics |= {VALIDATION_PREFIX + name: value for name, value in validated.items()}
            yield Validated(time=time, epoch=self.epochs, step=step + 1, metrics=validated, seconds=0.0)

    def _add_row(self, step: int, time: float, series: dict[str, float]) -> None:
        for name, value in series.items():
            total, count = self._open.get(name, (0.0, 0))
            self._open[name] = total + value, count + 1
        last = self._rows[-1] if self._rows else self._written
        if last and last.step == step:
            time, series = last.time, {**last.values, **series}
            if self._rows:
                self._rows.pop()
        self._rows.append(StepRow(step, time, series))
        self._calls += 1
        self._began = self._began or (step, time)

    def _take_rows(self) -> Iterator[PendingSteps]:
        rows, self._rows = self._rows, []
        if not rows:
            return
        # Nobody knows how long the first step took; to write a step again takes no time.
        alone = self._written is None or rows[0].step == self._written.step
        if alone:
            first = rows[0].step if self._written else self._before
            yield from map(_pending, chunks_of(rows[:1], first, rows[0].time))
            self._written = rows[0]
        if self._written:
            began, ended = self._written.time, rows[-1].time
            if len(rows[alone:]) > MAX_CALLS_PER_SECOND * (ended - began):
                began = ended  # no time, and so no rate
            yield from map(_pending, chunks_of(rows[alone:], self._written.step + 1, began))
        self._written = rows[-1]

    def _sorted(self, values: Mapping[str, Any]) -> tuple[int | None, dict[str, float], dict[str, float]]:
        """The epoch, the series and the metrics of validation among logged values."""
        epoch: int | None = None
        found: tuple[dict[str, float], dict[str, float]] = {}, {}
        others: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        for name, value in values.items():
            if (known := self._scalars.get(name)) and type(value) in PLAIN:
                found[known[0]][known[1]] = float(value)
                continue
            for metric, array in self._arrays(str(name), value):
                if metric == EPOCH:
                    epoch = self._number_of_epoch(array)
                    continue
                of_validation, plain = logged_metric(metric)
                others[of_validation][plain] = array
                if array.size == 1:
                    (series,) = self._names.scalars({plain: array})
                    self._scalars[name] = of_validation, series
        for known_metrics, rest in zip(found, others, strict=True):
            if rest:
                known_metrics.update({name: float(value) for name, value in self._names.scalars(rest).items()})
        return epoch, *found

    def _arrays(self, name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
        """The arrays of numbers in a value, which may be a mapping; anything else is named in a warning."""
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield from self._arrays(f"{name}_{key}", each)
            return
        try:
            yield name, snapshot_array(value, name).astype(np.float64)
        except Exception as error:  # noqa: BLE001 (of the value's own library)
            self.warn_once(f"value {name}", f"{name} is not recorded: {format_error(error)}")

    def _number_of_epoch(self, logged: np.ndarray) -> int | None:
        """The run's epoch, counted from 1, for a logged one, which the script may count from 0."""
        if logged.size != 1 or not math.isfinite(logged.item()):
            return None
        epoch = int(logged.item())
        if self._epoch is None and self.epochs == self._epochs_before:
            self._counts_from_zero = epoch == 0
        return self._epochs_before + epoch + self._counts_from_zero


def _pending(chunk: StepChunk) -> PendingSteps:
    count = len(next(iter(chunk.series.values())))
    return PendingSteps(chunk.started, chunk.ended, count, chunk.series, first_step=chunk.first_step)
