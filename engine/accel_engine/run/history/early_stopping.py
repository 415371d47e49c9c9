"""Follows the monitored metric: its best value, and whether training should stop early.

All of it follows from the run's events, so that a continued run decides as an uninterrupted one does.
"""

import math
from collections.abc import Iterable, Mapping

from accel_engine.events import EpochEnded, Event, Outcome, RunEnded, RunStarted, Validated
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.words import numbers

_Value = tuple[int, float, bool]
"""Step, value, and whether it counts for the patience."""


class EarlyStopping:
    """The values of the monitored metric.

    As in Keras, a value is an improvement if it is better than the best one by more than ``min_delta``, and training
    stops after ``patience`` values in a row that are none.

    Args:
        monitor: The metric, with ``validation_`` before one of validation.
        lower: Whether lower values are better.
        min_delta: The smallest change that is an improvement.
        patience: Number of values without improvement after which training stops; ``None`` for never.
    """

    def __init__(self, monitor: str, *, lower: bool, min_delta: float = 0.0, patience: int | None = None) -> None:
        self.monitor = monitor
        self._lower = lower
        self._min_delta = min_delta
        self._patience = patience
        self._values: list[_Value] = []
        self._best: tuple[int, float] | None = None
        self._waited = 0
        self._counted_step: int | None = None

    @property
    def best_step(self) -> int | None:
        """Steps taken before the best value; ``None`` before the first finite one."""
        return self._best[0] if self._best else None

    @property
    def best(self) -> float | None:
        """The best value."""
        return self._best[1] if self._best else None

    def waited(self, event: Event) -> int | None:
        """Values without improvement up to an event that was observed; ``None`` without patience or such a value."""
        kind = Validated if self.monitor.startswith(VALIDATION_PREFIX) else EpochEnded
        return self._waited if self._patience is not None and isinstance(event, kind) else None

    @property
    def should_stop(self) -> bool:
        """Whether there was no improvement for too long."""
        return self._patience is not None and self._waited >= self._patience

    @property
    def reason(self) -> str:
        """Why training stops."""
        unit = "validation" if self.monitor.startswith(VALIDATION_PREFIX) else "epoch"
        best = f"{numbers.metric(self._best[1])} at step {self._best[0]:,}" if self._best else "no finite value"
        since = numbers.counted(self._waited, unit)
        return f"early stopping: no better {self.monitor.replace('_', ' ')} in {since}; best: {best}"

    def best_among(self, steps: Iterable[int]) -> int | None:
        """The step with the best value, of those whose value is known; ``None`` if there is none."""
        among = {*steps}
        known = [(value, step) for step, value, _ in self._values if step in among and math.isfinite(value)]
        if not known:
            return None
        if self.best_step in among:
            return self.best_step  # which need not be the very best one, with min_delta
        return (min if self._lower else max)(known, key=lambda each: each[0])[1]

    def observe(self, event: Event) -> bool:
        """Take an event of the run into account; returns whether it has a new best value."""
        match event:
            case Validated() if self.monitor.startswith(VALIDATION_PREFIX):
                name = self.monitor.removeprefix(VALIDATION_PREFIX)
                return self._add(event.step, event.metrics, name, counts=not event.by_command)
            case EpochEnded():
                return self._add(event.step, event.metrics, self.monitor, counts=True)
        return False

    def replay(self, events: Iterable[Event], step: int) -> None:
        """Take the events of a run into account that continues from a step.

        Values after a checkpoint that training continued from are not counted. When a finished run is trained longer,
        the patience starts again.
        """
        finished = False
        for event in events:
            match event:
                case RunStarted(first_step=first):
                    self._rewind(first)
                    if finished:
                        self._values = [(step, value, False) for step, value, _ in self._values]
                        self._waited = 0
                    finished = False
                case RunEnded(outcome=outcome):
                    finished = outcome is Outcome.FINISHED
                case _:
                    self.observe(event)
        self._rewind(step)

    def _rewind(self, step: int) -> None:
        values = [value for value in self._values if value[0] <= step]
        if len(values) == len(self._values):
            return
        self._values, self._best, self._waited, self._counted_step = [], None, 0, None
        for value in values:
            self._count(*value)

    def _add(self, step: int, metrics: Mapping[str, float], name: str, *, counts: bool) -> bool:
        return name in metrics and self._count(step, metrics[name], counts)

    def _count(self, step: int, value: float, counts: bool) -> bool:
        counts = counts and step != self._counted_step
        self._counted_step = step if counts else self._counted_step
        self._values.append((step, value, counts))
        if math.isfinite(value) and (self._best is None or self._is_better(value, self._best[1])):
            self._best, self._waited = (step, value), 0
            return True
        self._waited += counts
        return False

    def _is_better(self, value: float, best: float) -> bool:
        return value < best - self._min_delta if self._lower else value > best + self._min_delta
