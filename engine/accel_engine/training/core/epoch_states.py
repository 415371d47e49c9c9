"""The states of all metrics over the steps of the epoch so far, of which the epoch's metrics follow."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class EpochStates:
    """Adds up the states of an epoch's steps; a checkpoint has them, so that a run continues in mid-epoch.

    Attributes:
        steps: The steps that are added.
        sums: The sums of their states, float64 ``[states]``; empty before the first step.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin another epoch."""
        self.steps = 0
        self.sums: npt.NDArray[np.float64] = np.zeros(0)

    def add(self, states: npt.NDArray[np.float64], steps: int) -> None:
        """Add the sum of the states of some steps, ``[states]``; those of other metrics, as of other code, are left."""
        if self.sums.shape != states.shape:
            self.clear()
        self.sums = self.sums + states if self.steps else states
        self.steps += steps

    @property
    def stored(self) -> npt.NDArray[np.float64]:
        """What a checkpoint stores: the steps and the sums, ``[1 + states]``."""
        return np.array([self.steps, *self.sums], np.float64)

    def restore(self, stored: Sequence[float]) -> None:
        """Continue from what a checkpoint has stored."""
        self.steps, self.sums = int(stored[0]), np.array(stored[1:], np.float64)
