"""The rates of many steps from a Keras learning-rate schedule, at once."""

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
"""How long it may take, where each is computed by itself, to compute the rates of the steps of half a second."""


class RateSchedule:
    """Computes rates from iteration numbers, without the optimizer.

    Most schedules take an array of numbers as they take one. Others, as those with a condition, are vectorized by the
    backend. Which way gives what the schedule gives for single numbers is tried once. Where neither does, as many as
    there is time for are computed one by one, evenly apart, and the others are missing.

    Args:
        schedule: A ``LearningRateSchedule``, which is a function of a number of iterations and nothing else.

    Attributes:
        schedule: The same.
    """

    def __init__(self, schedule: Any) -> None:
        self.schedule = schedule
        self._compute: Compute | None = None

    def rates(self, iterations: Numbers) -> Values:
        """The rate at each number of iterations.

        Args:
            iterations: In rising order, of the integer type that the optimizer counts in.

        Returns:
            As many, NaN where it was not computed.
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
                found = compute(iterations)
            except Exception:  # noqa: BLE001, S112 (a schedule of the user's own may refuse an array in any way)
                continue
            if found.shape == iterations.shape and np.allclose(found[[0, -1]], expected, rtol=1e-5, atol=0.0):
                return compute
        return partial(_one_by_one, self.schedule)


def _call(function: Callable[[Any], Any], iterations: Any) -> Values:
    with keras.device("cpu:0"):  # training has the accelerator
        rates = function(keras.ops.convert_to_tensor(iterations))
    return np.asarray(keras.ops.convert_to_numpy(rates), dtype=np.float64)


def _one_by_one(schedule: Callable[[Any], Any], iterations: Numbers) -> Values:
    """Rates evenly apart, the first among them, as many as there is time for."""
    rates = np.full(len(iterations), np.nan)
    began = time.perf_counter()
    rates[0] = _call(schedule, iterations[0])
    every = max(1, math.ceil(len(iterations) * (time.perf_counter() - began) / SINGLE_SECONDS))
    for place in range(every, len(iterations), every):
        rates[place] = _call(schedule, iterations[place])
    return rates


def _vectorized(schedule: Callable[[Any], Any], dtype: str) -> Callable[[Any], Any]:
    """The schedule for arrays, by the backend's own means."""

    def function(iterations: Any) -> Any:
        return keras.ops.vectorized_map(schedule, iterations)

    if keras.backend.backend() != "tensorflow":
        return function
    tensorflow = sys.modules["tensorflow"]  # Keras has imported it
    if tensorflow.config.functions_run_eagerly():
        raise RuntimeError("TensorFlow would vectorize anew each time, and change that setting meanwhile")
    # Compiled once for arrays of any length: to vectorize takes a quarter of a second.
    compiled: Callable[[Any], Any] = tensorflow.function(
        function, input_signature=[tensorflow.TensorSpec([None], dtype)]
    )
    return compiled
