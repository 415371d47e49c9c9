"""The batches of an epoch, from what Keras tells of them to series of a run."""

import math
from typing import Any

import numpy as np

from accel_engine.recording.logs import columns, numbers
from accel_engine.recording.metric_state import OWN, MetricState, Source, has_own_step
from accel_engine.recording.running_means import PRECISE_BATCHES, Point, Values, recover, weights
from accel_engine.run.series_names import SeriesNames

RUNNING = "running_"
"""Before the name of a mean since the epoch began."""

MEAN = "mean_"
"""Before the name of a mean of the batches of an execution."""


class BatchSeries:
    """What Keras told since the last look; for one ``fit``.

    A series has one name and one meaning from the first batch to the last. Which it is, is found out by the first two
    looks: what each batch measured, where that can be recovered, or else the mean since the epoch began. Where it
    cannot be recovered later on, values are missing.

    Args:
        execution: ``steps_per_execution``.
        steps: Batches of an epoch, where that is known.
        names: Gives the series their names.

    Attributes:
        add: Takes what Keras tells of a batch; called at every step, so it is no more than a list's ``append``.
        execution: Batches that Keras takes before it tells anything.
        missing: Names of the series that have values of single batches, and not of all.
    """

    def __init__(self, execution: int, steps: int | None, names: SeriesNames) -> None:
        self.execution = execution
        self._names = names
        self._is_long = steps is not None and steps > PRECISE_BATCHES
        self._logs: list[dict[str, Any]] = []
        self.add = self._logs.append
        self.missing: set[str] = set()
        self._gauges = MetricState()
        self._weights: dict[str, float] = {}
        self._prefixes: dict[str, str] = {}
        self._usual: dict[str, float] = {}
        self.begin_epoch()

    @property
    def waiting(self) -> int:
        """Steps that Keras told of since the last look."""
        return len(self._logs) * self.execution

    def batch(self, model: Any) -> int | None:
        """Examples of the first batch; ``None`` where the loss does not say: a user's own step may count batches."""
        weight = self._weights.get("loss", 0.0) / self.execution
        least = 1 if has_own_step(model) else 0
        return int(weight) if weight > least and weight.is_integer() else None

    def has(self, steps: int | None) -> bool:
        """Whether so many batches of the epoch were told; not where it is not known how many it has."""
        return steps is not None and (self._told + len(self._logs)) * self.execution >= steps

    def ends(self, steps: int | None) -> bool:
        """Whether the last of so many batches of the epoch was told since the last look."""
        return self._told * self.execution < (steps or 0) and self.has(steps)

    def begin_epoch(self) -> None:
        """Begin anew, as Keras does with its means."""
        self._logs.clear()
        self._told = 0
        self._before: dict[str, Point | None] = {}

    def take(self, model: Any, *, over: bool, last: bool = False) -> dict[str, Values]:
        """Give what was measured at each step since the last time, the loss first.

        Args:
            model: In training.
            over: Whether the epoch is.
            last: Whether no batch comes any more, as where an exception ends ``fit``.

        Returns:
            Nothing where no batch came, and where one batch alone does not tell yet what its values are.
        """
        if not self._logs:
            return {}
        count = len(self._logs)
        latest = numbers(self._logs[-1], self._names)
        found = self._gauges.read(model, latest, sure=self._told + count > 1)
        if not self._told:
            for name, source in found.items():
                if isinstance(source, Point):
                    self._weights.setdefault(name, source.count / count)
        if not self._prefixes and count == 1 and not over and not last:
            return {}
        told = columns(self._logs[:count], self._names)
        del self._logs[:count]
        series: dict[str, Values] = {}
        batches = np.full(count, self.execution)
        for name in sorted(found, key=lambda name: name != "loss"):
            if name not in told:  # the last batch had none of it
                told[name] = np.full(count, math.nan)
            each = self._weigh(name, told[name], found[name], over=over)
            prefix, values = self._measured(name, told[name], found[name], each)
            series[prefix + name] = values
            if name == "loss" and each is not None and over:
                batches[-1] = max(1, math.ceil(each[-1] / self._weights[name] * self.execution - 1e-6))
            self._before[name] = Point(told[name][-1], point.count) if isinstance(point := found[name], Point) else None
        self._told += count
        return {name: np.repeat(values, batches) for name, values in series.items()}

    def _weigh(self, name: str, told: Values, source: Source, *, over: bool) -> Values | None:
        """How much each call counts in the mean; ``None`` where that is not known."""
        before = self._before.get(name) if self._told else Point()
        if not isinstance(source, Point) or before is None or self._is_long:
            return None
        if (self._told + len(told)) * self.execution > PRECISE_BATCHES:
            return None
        return weights(source.count - before.count, len(told), self._weights.get(name, math.nan), over=over)

    def _measured(self, name: str, told: Values, source: Source, each: Values | None) -> tuple[str, Values]:
        """What stands before a series' name, and its values, one a call."""
        single = MEAN if self.execution > 1 else ""
        prefix = self._prefixes.setdefault(name, RUNNING if source != OWN and each is None else single)
        if (source == OWN) != (prefix == RUNNING):
            return prefix, told
        if each is not None:
            before = self._before.get(name) if self._told else Point()
            values, self._usual[name] = recover(before or Point(), told, each, self._usual.get(name, 0.0))
            if np.isnan(values[np.isfinite(told)]).any():
                self.missing.add(prefix + name)
            return prefix, values
        self.missing.add(prefix + name)
        return prefix, np.full(len(told), math.nan)
