"""The batches of an epoch, from what Keras tells of them to series of a run."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.recording.gauges import OWN, Gauges, Source, has_own_step
from accel_engine.recording.recovery import PRECISE_BATCHES, Point, recover, weights
from accel_engine.run.schema import series_name

Values = npt.NDArray[np.float64]

RUNNING = "running_"
"""Before the name of a mean since the epoch began."""

MEAN = "mean_"
"""Before the name of a mean of the batches of an execution."""


class Batches:
    """What Keras told since the last look.

    Args:
        execution: Batches that Keras takes before it tells anything (``steps_per_execution``).

    Attributes:
        add: Takes what Keras tells of a batch; called at every step, so it is no more than a list's ``append``.
    """

    def __init__(self, execution: int) -> None:
        self._execution = execution
        self._logs: list[dict[str, float]] = []
        self.add = self._logs.append
        self._gauges = Gauges()
        self._weights: dict[str, float] = {}
        self.begin_epoch()

    def batch(self, model: Any) -> int | None:
        """Examples of the first batch; ``None`` where the loss does not say: a user's own step may count batches."""
        weight = self._weights.get("loss", 0.0) / self._execution
        least = 1 if has_own_step(model) else 0
        return int(weight) if weight > least and weight.is_integer() else None

    def has(self, steps: int | None) -> bool:
        """Whether so many batches of the epoch were told; not where it is not known how many it has."""
        return steps is not None and (self._told + len(self._logs)) * self._execution >= steps

    def begin_epoch(self) -> None:
        """Begin anew, as Keras does with its means."""
        self._logs.clear()
        self._told = 0
        self._before: dict[str, Point | None] = {}

    def take(self, model: Any, *, over: bool) -> dict[str, Values]:
        """Give what was measured at each step since the last time, the loss first.

        Args:
            model: In training.
            over: Whether the epoch is.

        Returns:
            Nothing where no batch came.
        """
        if not self._logs:
            return {}
        logs, count = self._logs.copy(), len(self._logs)
        self._logs.clear()
        latest = {name: value for name, value in logs[-1].items() if isinstance(value, float)}
        found = self._gauges.read(model, latest, sure=self._told + count > 1)
        series: dict[str, Values] = {}
        batches = np.full(count, self._execution)
        for name in sorted(found, key=lambda name: name != "loss"):
            told = np.array([each.get(name, math.nan) for each in logs], dtype=np.float64)
            prefix, values, each = self._measured(name, told, found[name], over=over)
            series[series_name(prefix + name)] = values
            if name == "loss" and each is not None and over:
                batches[-1] = max(1, math.ceil(each[-1] / self._weights[name] * self._execution - 1e-6))
        self._told += count
        return {name: np.repeat(values, batches) for name, values in series.items()}

    def _measured(self, name: str, told: Values, source: Source, *, over: bool) -> tuple[str, Values, Values | None]:
        """What to call a series, its values a call, and how much each call counts, where that is known."""
        if source == OWN:
            return (MEAN if self._execution > 1 else ""), told, None
        before = self._before.get(name) if self._told else Point()
        self._before[name] = None
        if isinstance(source, Point):
            self._before[name] = Point(told[-1], source.count)
            if before is not None and (self._told + len(told)) * self._execution <= PRECISE_BATCHES:
                weight = self._weights.setdefault(name, source.count / len(told)) if not self._told else 0.0
                weight = self._weights.get(name, weight)
                each = weights(source.count - before.count, len(told), weight, over=over)
                if each is not None:
                    return (MEAN if self._execution > 1 else ""), recover(before, told, each), each
        return RUNNING, told, None
