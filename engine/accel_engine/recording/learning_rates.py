"""Records the learning rate of each step of a script's optimizers.

The rates of many steps of a schedule are computed at once.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from accel_engine.keras_support.optimizers import optimizers_by_attribute
from accel_engine.private_names.keras_names import iterations_of, schedule_of
from accel_engine.recording.error_guard import value_or_none
from accel_engine.recording.running_means import Values
from accel_engine.run.store.series_names import LEARNING_RATE, series_name

Numbers = npt.NDArray[np.integer[Any]]
Compute = Callable[[Numbers], Values]

SINGLE_SECONDS = 0.005
"""Time limit for computing the rates of one update one by one."""


class RateSchedule:
    """Computes rates from iteration numbers, without the optimizer.

    Most schedules accept an array. Others, such as those with a condition, are vectorized by the backend. The first
    call finds out which of these gives the same rates as single calls. If neither does, evenly spaced rates are
    computed one by one within a time limit, and the others are missing.

    Args:
        schedule: A ``LearningRateSchedule`` that depends on nothing but the number of iterations.
    """

    def __init__(self, schedule: Any) -> None:
        self.schedule = schedule
        self._compute: Compute | None = None

    def rates(self, iterations: Numbers) -> Values:
        """Compute the rate at each number of iterations.

        Args:
            iterations: Ascending, of the optimizer's integer type, ``[n]``.

        Returns:
            Rates ``[n]``, NaN where not computed.
        """
        if len(iterations) == 1:
            return _call(self.schedule, iterations[0]).reshape(1)
        if self._compute is None:
            self._compute = self._choose(iterations)
        return self._compute(iterations)

    def _choose(self, iterations: Numbers) -> Compute:
        expected = [_call(self.schedule, iterations[place]) for place in (0, -1)]
        for vectorize in (lambda: self.schedule, lambda: _vectorized(self.schedule, iterations.dtype.name)):
            try:
                compute = partial(_call, vectorize())
                rates = compute(iterations)
            except Exception:  # noqa: BLE001, S112 (a user's schedule may raise anything for an array)
                continue
            if rates.shape == iterations.shape and np.allclose(rates[[0, -1]], expected, rtol=1e-5, atol=0.0):
                return compute
        return partial(_one_by_one, self.schedule)


def _call(function: Callable[[Any], Any], iterations: Any) -> Values:
    with keras.device("cpu:0"):  # the accelerator is busy training
        rates = function(keras.ops.convert_to_tensor(iterations))
    return np.asarray(keras.ops.convert_to_numpy(rates), dtype=np.float64)


def _one_by_one(schedule: Callable[[Any], Any], iterations: Numbers) -> Values:
    """Evenly spaced rates, including the first, within the time limit."""
    rates = np.full(len(iterations), np.nan)
    started = time.perf_counter()
    rates[0] = _call(schedule, iterations[0])
    every = max(1, math.ceil(len(iterations) * (time.perf_counter() - started) / SINGLE_SECONDS))
    for index in range(every, len(iterations), every):
        rates[index] = _call(schedule, iterations[index])
    return rates


def _vectorized(schedule: Callable[[Any], Any], dtype: str) -> Callable[[Any], Any]:
    """Vectorize a schedule with the backend."""

    def function(iterations: Any) -> Any:
        return keras.ops.vectorized_map(schedule, iterations)

    if keras.backend.backend() != "tensorflow":
        return function
    tensorflow = sys.modules["tensorflow"]  # Keras has imported it
    if tensorflow.config.functions_run_eagerly():
        raise RuntimeError("in eager mode, TensorFlow would vectorize on each call, and change the mode while it does")
    # Compiled once for arrays of any length: vectorizing takes a quarter of a second.
    return tensorflow.function(function, input_signature=[tensorflow.TensorSpec([None], dtype)])


FIRST_READS = 10
"""How many batches a rate is read before, to decide whether it changes with each batch; a read takes about 20 us."""

StepRates = Values | Callable[[], Values]
"""One rate per step, or a function that computes them in the recorder thread."""


class LearningRates:
    """Tracks the learning rates of one ``fit``.

    With a schedule, the rate of each step is computed from the optimizer's number of iterations. Otherwise it is the
    value of the optimizer's variable, which callbacks may change. It is read before the first batch of an epoch, at
    each update, and before every batch while it changes within epochs, e.g. by a callback that sets it at each batch.
    Between two updates with different values, the rates of the steps are unknown and missing. If a callback after the
    recorder sets the rate in ``on_train_batch_begin``, it is recorded one step late.

    A script may have several optimizers, each an attribute of its model: the rates of ``d_optimizer`` are
    ``d_learning_rate``. An optimizer that takes no step is skipped.

    Attributes:
        due: Whether to call :meth:`read` before the next batch.
    """

    def __init__(self, model: Any) -> None:
        self.due = True
        self._tracked: dict[str, _TrackedOptimizer] = {}
        self._series: dict[str, str] = {}
        self._find(model)

    def begin_epoch(self) -> None:
        """Read before the epoch's first batch: callbacks change rates between epochs."""
        self.due = True

    def read(self, step: int) -> None:
        """Read the rates before a batch.

        Args:
            step: The batch's first step, counted from the last update.
        """
        for tracked in self._tracked.values():
            value_or_none(tracked.read, step)
        self.due = self._changing

    def take(self, model: Any, steps: int) -> dict[str, StepRates]:
        """Return the rates of the steps since the last update, by series name.

        Args:
            model: The model in training.
            steps: Number of steps, at least 1.
        """
        self._find(model)
        found: dict[str, StepRates] = {}
        for name, optimizer in _optimizers(model).items():
            if tracked := self._tracked.get(name):
                rates = value_or_none(tracked.take, optimizer, steps)
                if rates is not None:
                    found[self._named(name)] = rates
        self.due = self.due or self._changing
        return found

    @property
    def names(self) -> set[str]:
        """Names of all possible series."""
        return {learning_rate_series_name(attribute) for attribute in self._tracked}

    @property
    def _changing(self) -> bool:
        return any(tracked.changes for tracked in self._tracked.values())

    def _named(self, attribute: str) -> str:
        """The series name of an optimizer in use."""
        if attribute not in self._series:
            series = learning_rate_series_name(attribute)
            while series in self._series.values():  # e.g. for optimizer and _optimizer
                series += "_2"
            self._series[attribute] = series
        return self._series[attribute]

    def _find(self, model: Any) -> None:
        for name, optimizer in _optimizers(model).items():
            if name not in self._tracked and (tracked := value_or_none(_TrackedOptimizer, optimizer)):
                self._tracked[name] = tracked


class _TrackedOptimizer:
    """One optimizer's rate.

    Attributes:
        changes: Whether its variable is known, or assumed, to change between batches.
    """

    def __init__(self, optimizer: Any) -> None:
        self.changes = True  # until known
        self._optimizer = optimizer
        self._is_new = True
        self._used = False
        self._iterations = _iterations(optimizer)
        self._schedule: RateSchedule | None = None
        self._last = value_or_none(_rate, optimizer) if not schedule_of(optimizer) else None
        self._reads: list[tuple[int, float]] = []

    def read(self, step: int) -> None:
        """Read the rate before a step, counted from the last update."""
        if schedule_of(self._optimizer):
            self.changes = False
            return
        self._reads.append((step, _rate(self._optimizer)))
        if self._is_new and len(self._reads) == FIRST_READS:
            self._is_new = False
            self.changes = len({rate for _, rate in self._reads}) > 1

    def take(self, optimizer: Any, steps: int) -> StepRates | None:
        """Return the rates of ``steps`` steps; ``None`` if the optimizer was never used."""
        self._optimizer = optimizer
        before, self._iterations = self._iterations, _iterations(optimizer)
        reads, self._reads = self._reads, []
        updates = self._iterations - before
        self._used = self._used or updates > 0
        if not self._used:
            return None
        if schedule := schedule_of(optimizer):
            self.changes = False
            if self._schedule is None or self._schedule.schedule is not schedule:
                self._schedule = RateSchedule(schedule)
            compute, dtype = self._schedule.rates, self._iterations.dtype
            numbers = before + np.arange(steps) * updates // steps
            return lambda: compute(numbers.astype(dtype))
        self._schedule = None
        now = _rate(optimizer)
        points = [*([] if reads and reads[0][0] == 0 else [(-1, self._last)]), *reads]
        values = {now, *(rate for _, rate in points if rate is not None)}
        # Only two reads can show that it does not change.
        self.changes = len(values) > 1 or (self.changes and len(reads) < 2)
        self._last = now
        return _between([*points, (steps, now)], steps)


def learning_rate_series_name(attribute: str) -> str:
    """The series name of an optimizer's rate, from the model's attribute: ``d_learning_rate`` for ``d_optimizer``."""
    if "optimizer" in attribute:
        return series_name(attribute.replace("optimizer", LEARNING_RATE).strip("_"))
    return series_name(f"{attribute.strip('_')}_{LEARNING_RATE}")


def optimizers_in_use(model: Any) -> Mapping[str, Any]:
    """The optimizers that have taken steps, or those that are built if none has, by the model's attributes.

    A model with its own optimizers may have an unused one, too, as ``compile`` creates one by default.
    """
    found = _optimizers(model)
    used = {name: optimizer for name, optimizer in found.items() if (value_or_none(_iterations, optimizer) or 0) > 0}
    return used or {name: optimizer for name, optimizer in found.items() if optimizer.built}


def _optimizers(model: Any) -> dict[str, Any]:
    """The model's optimizers by attribute; none if the attributes of a user's class cannot be read."""
    return value_or_none(optimizers_by_attribute, model) or {}


def _iterations(optimizer: Any) -> np.integer[Any]:
    return keras.ops.convert_to_numpy(iterations_of(optimizer))[()]


def _rate(optimizer: Any) -> float:
    rate = optimizer.learning_rate
    return float(getattr(rate, "value", rate))  # three times as fast as converting Keras' variable to an array


def _between(points: list[tuple[int, float | None]], steps: int) -> Values:
    """Fill in the rates of all steps from known ones, in order; NaN between two different ones."""
    rates = np.full(steps, np.nan)
    for (first, rate), (last, after) in pairwise(points):
        if rate is not None:
            known_until = last if rate == after else first + 1
            rates[max(0, first) : known_until] = rate
    return rates
