"""Records the steps of a run, and measures their rate, the means of an epoch and what takes the time."""

import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine import clock
from accel_engine.events import TimeMeasured
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.training.core.loop import ChunkResult, Loop
from accel_engine.training.core.metric_states import EpochStates
from accel_engine.training.core.step_rate import ChunkRate
from accel_engine.training.reporting.run_reporter import RunReporter


@dataclass(frozen=True, slots=True)
class EpochMetrics:
    """The metrics of an epoch."""

    values: dict[str, float]
    """The metrics over its examples as ``fit`` has them, and the means of all other series."""
    seconds: float
    """Duration of its steps."""
    measured: int
    """Steps whose metrics are known."""
    steps: int
    """All of its steps with an update."""


class StepRecorder:
    """Writes chunks of steps.

    Args:
        reporter: The run's step.
        states: The metrics of the epoch so far, of a run that continues as its checkpoint has them.

    Attributes:
        means: The means of the epoch so far.
        rate: The rate of all steps, without the first chunk.
    """

    def __init__(self, reporter: RunReporter, states: EpochStates) -> None:
        self._reporter, self._states = reporter, states
        self.means = Means()
        self.rate = ChunkRate(warm_up=True)
        self._names: tuple[str, ...] = ()

    def continue_epoch(self, done: int, sizes: Sequence[int], skipped: Container[int] = ()) -> None:
        """Read the steps that the epoch of a continued run already has.

        Args:
            done: Their number.
            sizes: Examples of each.
            skipped: Steps without an update, which are not part of the means.
        """
        step = self._reporter.step
        series, seconds = self._reporter.run.read_steps(step - done, step)
        if any(len(values) != done for values in series.values()):
            series = {}  # a power failure has taken rows that the checkpoint is newer than
        taken = [each not in skipped for each in range(step - done, step)]
        self.means.add({name: values[taken] for name, values in series.items()}, seconds, list(compress(sizes, taken)))

    def end_epoch(self, loop: Loop) -> EpochMetrics:
        """Begin another epoch; returns what was measured of this one.

        Args:
            loop: Computes metrics of the states of its steps.
        """
        means, states = self.means, self._states
        measured = loop.metrics(states.sums) if states.sums.size else {}
        known = min(states.steps, means.measured) if measured else means.measured
        found = EpochMetrics(means.value | measured, means.seconds, known, means.steps)
        self.means = Means()
        states.clear()
        return found

    def record(self, chunk: ChunkResult) -> None:
        """Write a chunk of steps of one epoch."""
        first, self._names = self._reporter.step, tuple(chunk.series)
        self._reporter.step += chunk.count
        self._reporter.run.write_chunk(first, chunk.started, chunk.started + chunk.seconds, chunk.series)
        self.means.add(chunk.series, chunk.seconds, [chunk.examples] * chunk.count)
        self._states.add(chunk.states.sum(axis=0, dtype=np.float64), chunk.count)

    def skip(self, rate: float | None) -> None:
        """Write a step without an update, which has no loss.

        Args:
            rate: The learning rate that it would have had; ``None`` if it is unknown.
        """
        step, now = self._reporter.step, clock.now()
        self._reporter.step += 1
        series = {name: np.full(1, np.nan, np.float32) for name in ("loss", *self._names)}
        if rate is not None:
            series[LEARNING_RATE] = np.full(1, rate, np.float32)
        self._reporter.run.write_chunk(step, now, now, series)


class Means:
    """Means of every series over the examples of an epoch's steps, as in ``fit``, without the learning rate.

    Attributes:
        steps: Number of steps.
        measured: Number of those whose series are known.
        seconds: Duration of all.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, float] = {}
        self.steps = self.measured = 0
        self.seconds = 0.0

    def add(self, series: Mapping[str, npt.NDArray[np.float32]], seconds: float, examples: Sequence[int]) -> None:
        """Add a chunk's series, each ``[count]``, its duration, and the number of examples of each step."""
        weights = np.asarray(examples, np.float64)
        for name, values in series.items():
            if name == LEARNING_RATE:
                continue
            self._sums[name] = self._sums.get(name, 0.0) + float((values * weights).sum())
            self._counts[name] = self._counts.get(name, 0.0) + float(weights.sum())
        self.steps += len(examples)
        self.measured += len(examples) if series else 0
        self.seconds += seconds

    @property
    def value(self) -> dict[str, float]:
        """The means by series."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}


INTERVAL_SECONDS = 10.0
"""Time between two events within an epoch, at least."""

EPOCH_SECONDS = 1.0
"""Time between an event at the end of an epoch and the one before, at least."""

Item = TypeVar("Item")


class TimeMeter:
    """Adds up seconds by what they are spent on, and writes them as :class:`accel_engine.events.TimeMeasured`.

    Args:
        reporter: The run's step.
        take_input_wait: Returns the seconds in which steps waited for their batches, since the last call.
    """

    def __init__(self, reporter: RunReporter, take_input_wait: Callable[[], float]) -> None:
        self._reporter = reporter
        self._take_input_wait = take_input_wait
        self._first_step = reporter.step
        self._began = time.perf_counter()
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._within = 0.0  # seconds of the blocks within the block that is being measured

    def add(self, what: str, seconds: float) -> None:
        """Add seconds to what they were spent on."""
        self._spent[what] += seconds

    @contextmanager
    def measure(self, what: str) -> Iterator[Callable[[], float]]:
        """Add the time of the ``with`` block, without the time of such blocks inside it, which are added separately.

        Yields:
            A function that returns its seconds so far.
        """
        began, outer, self._within = time.perf_counter(), self._within, 0.0

        def own_seconds() -> float:
            return time.perf_counter() - began - self._within

        try:
            yield own_seconds
        finally:
            self.add(what, own_seconds())
            self._within = outer + time.perf_counter() - began

    def waiting(self, items: Iterable[Item]) -> Iterator[tuple[Item, float]]:
        """Yield items, each with the seconds in which it was waited for, which are added to the input's."""
        iterator = iter(items)
        while True:
            began = time.perf_counter()
            item = next(iterator, None)
            if item is None:
                return
            waited = time.perf_counter() - began
            self.add("input", waited)
            yield item, waited

    def report_if_due(self, interval: float = INTERVAL_SECONDS) -> None:
        """Write the event if the last one is some seconds ago."""
        if time.perf_counter() - self._began >= interval:
            self.report()

    def report(self) -> None:
        """Write the event, if steps were taken since the last one."""
        first, step, now = self._first_step, self._reporter.step, time.perf_counter()
        if step <= first:
            return
        self.add("input", self._take_input_wait())
        spent = {what: round(seconds, 6) for what, seconds in sorted(self._spent.items()) if seconds}
        self._reporter.emit(TimeMeasured, first_step=first, step=step, seconds=now - self._began, spent=spent)
        self._first_step, self._began = step, now
        self._spent.clear()
