"""Follows the monitored metric: its best value, and whether training should stop early.

All of it follows from the run's history, so that a continued run decides as an uninterrupted one does.
"""

import math
from collections.abc import Iterable

from accel_engine.events import EpochEnded, Event, Validated
from accel_engine.run.history.history import History, is_improvement
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.words import numbers


class EarlyStopping:
    """The values of the monitored metric.

    As in Keras, a value is an improvement if it is better than the best one by more than ``min_delta``, and training
    stops after ``patience`` values in a row without an improvement.

    Args:
        monitor: The metric, with ``validation_`` before one of validation.
        lower: Whether lower values are better.
        min_delta: The smallest change that is an improvement.
        patience: Number of values without improvement after which training stops; ``None`` for never.
    """

    def __init__(self, monitor: str, *, lower: bool, min_delta: float = 0.0, patience: int | None = None) -> None:
        self._monitor = monitor
        self._kind = Validated if monitor.startswith(VALIDATION_PREFIX) else EpochEnded
        self._lower = lower
        self._min_delta = min_delta
        self._patience = patience
        self._values: dict[int, float] = {}
        self._best: tuple[int, float] | None = None
        self._waited = 0
        self._counted_step: int | None = None

    @property
    def follows_epochs(self) -> bool:
        """Whether the metric is one of training, which the end of each epoch gives."""
        return self._kind is EpochEnded

    @property
    def best_step(self) -> int | None:
        """Steps taken before the best value; ``None`` before the first finite one."""
        return self._best[0] if self._best else None

    @property
    def best(self) -> float | None:
        """The best value."""
        return self._best[1] if self._best else None

    def waited(self, event: Event) -> int | None:
        """Values without improvement up to an event; ``None`` without patience, or if the event gives no such value."""
        return self._waited if self._patience is not None and isinstance(event, self._kind) else None

    @property
    def should_stop(self) -> bool:
        """Whether there was no improvement for too long."""
        return self._patience is not None and self._waited >= self._patience

    @property
    def reason(self) -> str:
        """Why training stops."""
        unit = "validation" if self._kind is Validated else "epoch"
        best = f"{numbers.metric(self._best[1])} at step {self._best[0]:,}" if self._best else "no finite value"
        since = numbers.counted(self._waited, unit)
        return f"early stopping: no better {self._monitor.replace('_', ' ')} in {since}; best: {best}"

    def best_among(self, steps: Iterable[int]) -> int | None:
        """:attr:`best_step` if it is one of them, else the one with the best value; ``None`` if no value is known."""
        known = {step: self._values[step] for step in steps if math.isfinite(self._values.get(step, math.nan))}
        if self.best_step in known:
            return self.best_step  # which need not be the very best one, with min_delta
        return (min if self._lower else max)(known, key=known.__getitem__, default=None)

    def observe(self, event: Event, *, counts: bool = True) -> bool:
        """Take an event of the run into account; returns whether it has a new best value.

        Args:
            event: The event.
            counts: Whether it counts for the patience, if the plan asked for it.
        """
        if not isinstance(event, EpochEnded | Validated) or not isinstance(event, self._kind):
            return False
        value = event.metrics.get(self._monitor.removeprefix(VALIDATION_PREFIX))
        if value is None:
            return False
        by_command = isinstance(event, Validated) and event.by_command
        return self._count(event.step, value, counts=counts and not by_command)

    def restore(self, history: History, until: float = math.inf) -> None:
        """Take the values of a run's history into account, up to a step.

        When a finished run is trained longer, the patience starts again.
        """
        for event in history.measured(self._monitor):
            if event.step <= until:
                self.observe(event, counts=event.step > history.patience_from)

    def _count(self, step: int, value: float, *, counts: bool) -> bool:
        counts = counts and step != self._counted_step
        self._counted_step = step if counts else self._counted_step
        self._values[step] = value
        if math.isfinite(value) and (self._best is None or self._is_better(value, self._best[1])):
            self._best, self._waited = (step, value), 0
            return True
        self._waited += counts
        return False

    def _is_better(self, value: float, best: float) -> bool:
        return is_improvement(value, best, lower=self._lower, min_delta=self._min_delta)
