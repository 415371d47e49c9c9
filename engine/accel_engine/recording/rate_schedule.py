"""Computes the rates of many steps of a Keras learning-rate schedule at once."""

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from accel_engine.recording.running_means import Values

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
    compiled: Callable[[Any], Any] = tensorflow.function(
        function, input_signature=[tensorflow.TensorSpec([None], dtype)]
    )
    return compiled
