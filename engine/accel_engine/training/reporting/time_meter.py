"""Measures how the time of a run is spent: steps, input, validation, checkpoints and what comes between."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from accel_engine.events import TimeMeasured
from accel_engine.training.reporting.run_reporter import RunReporter

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
        """Add the time of the ``with`` block, without that of such blocks within it, which count for themselves.

        Yields:
            Returns its seconds so far.
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
