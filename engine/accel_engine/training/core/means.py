"""Computes the means of an epoch's series, chunk by chunk."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from accel_engine.run.store.series_names import LEARNING_RATE


class Means:
    """Means of every series over the examples of an epoch's steps, as in ``fit``, without the learning rate.

    Attributes:
        steps: Number of steps.
        seconds: Their duration.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, float] = {}
        self.steps = 0
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
        self.seconds += seconds

    @property
    def value(self) -> dict[str, float]:
        """The means by series."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}
