"""Makes a value for each step of the logs that Keras gives to batch callbacks."""

import math
from typing import Any

import numpy as np

from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.recording.keras_logs import columns, numbers
from accel_engine.recording.logged_values import BATCH_VALUE, LoggedValues, Source
from accel_engine.recording.running_means import PRECISE_BATCHES, RunningMean, Values, batch_weights, recover_values
from accel_engine.run.store.series_names import SeriesNames

RUNNING = "running_"
"""Prefix of running means over the epoch so far."""

MEAN = "mean_"
"""Prefix of means over the batches of an execution."""


class BatchSeries:
    """Collects the batch logs of one ``fit`` between updates.

    The first two updates decide what a series has in the whole ``fit``: the value of each batch if that can be computed
    from Keras' running means, else the running mean over the epoch. A batch whose value cannot be computed is missing.

    Args:
        execution: ``steps_per_execution``: batches per call of the batch callbacks.
        steps: Batches per epoch, if known.
        names: Names the series.

    Attributes:
        add: Adds the logs of a call of the batch callbacks. It is a list's ``append``, as it delays training.
        execution: The same.
        missing: Names of the series that lack the values of some batches.
    """

    def __init__(self, execution: int, steps: int | None, names: SeriesNames) -> None:
        self.execution = execution
        self._names = names
        self._is_long = steps is not None and steps > PRECISE_BATCHES
        self._logs: list[dict[str, Any]] = []
        self.add = self._logs.append
        self.missing: set[str] = set()
        self._logged_values = LoggedValues()
        self._weights: dict[str, float] = {}
        self._prefixes: dict[str, str] = {}
        self._usual: dict[str, float] = {}
        self.begin_epoch()

    @property
    def pending_steps(self) -> int:
        """Number of steps since the last update."""
        return len(self._logs) * self.execution

    def batch(self, model: Any) -> int | None:
        """Size of the first batch; ``None`` if the loss does not tell it: a custom train step may count batches."""
        weight = self._weights.get("loss", 0.0) / self.execution
        minimum = 1 if has_custom_train_step(model) else 0
        return int(weight) if weight > minimum and weight.is_integer() else None

    def has_all_batches(self, steps: int | None) -> bool:
        """Whether ``steps`` batches of the epoch were added; false if the epoch's length is unknown."""
        return steps is not None and (self._taken + len(self._logs)) * self.execution >= steps

    def just_completed_epoch(self, steps: int | None) -> bool:
        """Whether the last of the epoch's ``steps`` batches was added since the last update."""
        return self._taken * self.execution < (steps or 0) and self.has_all_batches(steps)

    def begin_epoch(self) -> None:
        """Reset, as Keras resets its means."""
        self._logs.clear()
        self._taken = 0
        self._before: dict[str, RunningMean | None] = {}

    def take(self, model: Any, *, epoch_ended: bool, fit_ended: bool = False) -> dict[str, Values]:
        """Return the series of the steps since the last update, the loss first.

        Args:
            model: The model in training.
            epoch_ended: Whether the epoch has ended.
            fit_ended: Whether no more batches will come, as an exception has ended ``fit``.

        Returns:
            Series by name; empty without a new batch, or if one batch alone does not determine what its values mean.
        """
        if not self._logs:
            return {}
        count = len(self._logs)
        latest = numbers(self._logs[-1], self._names)
        found = self._logged_values.identify(model, latest, permanent=self._taken + count > 1)
        if not self._taken:
            for name, source in found.items():
                if isinstance(source, RunningMean):
                    self._weights.setdefault(name, source.count / count)
        if not self._prefixes and count == 1 and not epoch_ended and not fit_ended:
            return {}
        logged = columns(self._logs[:count], self._names)
        del self._logs[:count]
        series: dict[str, Values] = {}
        batches = np.full(count, self.execution)
        for name in sorted(found, key=lambda name: name != "loss"):
            if name not in logged:  # the last batch had no value
                logged[name] = np.full(count, math.nan)
            weights = self._weights_of(name, logged[name], found[name], epoch_ended=epoch_ended)
            prefix, values = self._measured(name, logged[name], found[name], weights)
            series[prefix + name] = values
            if name == "loss" and weights is not None and epoch_ended:
                # The last call of an epoch may have fewer batches, as its share of the usual weight tells; the weights
                # are differences of float32 sums, whose rounding must not add a batch.
                batches[-1] = max(1, math.ceil(weights[-1] / self._weights[name] * self.execution - 1e-6))
            self._before[name] = (
                RunningMean(logged[name][-1], mean.count) if isinstance(mean := found[name], RunningMean) else None
            )
        self._taken += count
        return {name: np.repeat(values, batches) for name, values in series.items()}

    def _weights_of(self, name: str, logged: Values, source: Source, *, epoch_ended: bool) -> Values | None:
        """Weight of each call in the mean; ``None`` if unknown."""
        before = self._before.get(name) if self._taken else RunningMean()
        if not isinstance(source, RunningMean) or before is None or self._is_long:
            return None
        if (self._taken + len(logged)) * self.execution > PRECISE_BATCHES:
            return None
        return batch_weights(
            source.count - before.count, len(logged), self._weights.get(name, math.nan), epoch_ended=epoch_ended
        )

    def _measured(self, name: str, logged: Values, source: Source, weights: Values | None) -> tuple[str, Values]:
        """The prefix of a series' name, and its values, one per call."""
        single = MEAN if self.execution > 1 else ""
        prefix = self._prefixes.setdefault(name, RUNNING if source != BATCH_VALUE and weights is None else single)
        if (source == BATCH_VALUE) != (prefix == RUNNING):
            return prefix, logged
        if weights is not None:
            before = self._before.get(name) if self._taken else RunningMean()
            usual = self._usual.get(name, 0.0)
            values, self._usual[name] = recover_values(before or RunningMean(), logged, weights, usual)
            if np.isnan(values[np.isfinite(logged)]).any():
                self.missing.add(prefix + name)
            return prefix, values
        self.missing.add(prefix + name)
        return prefix, np.full(len(logged), math.nan)
