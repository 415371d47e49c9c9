"""How far a run was trained, and for how many epochs it can be trained longer."""

import math
from dataclasses import dataclass

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan import Plan
from accel_engine.run import RunInfo
from accel_engine.run.runs.plan_changes import check_epochs


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A finished run, and how far it was trained."""

    info: RunInfo
    plan: Plan
    epochs: float
    """Epochs trained at its last checkpoint, as a fraction."""

    @property
    def trained(self) -> int:
        """Whole epochs trained, the last one included if it was not completed."""
        return math.ceil(self.epochs)

    @property
    def minimum(self) -> int:
        """The fewest epochs in total with which the run can continue."""
        return next(
            (epochs for epochs in (self.trained + 1, self.plan.epochs + 1) if self._allows(epochs)),
            max(self.trained, self.plan.epochs) + 1,
        )

    def _allows(self, epochs: int) -> bool:
        try:
            check_epochs(self.info, self.plan.replace(epochs=epochs), float(self.trained))
        except PlanError:
            return False
        return True


def parse_epochs(text: str, run: TrainedRun) -> int:
    """Parse a number of epochs; returns the epochs in total.

    Args:
        text: A total, such as ``20``, or an addition, such as ``+10``.
        run: The run.

    Raises:
        UsageError: The text is not a whole number, or the total is below :attr:`TrainedRun.minimum`.
    """
    text = text.replace(",", "").replace(" ", "")
    try:
        total = int(text) + (run.trained if text.startswith("+") else 0)
    except ValueError:
        raise UsageError("must be a number of epochs, e.g. 20 in total, or +10 for 10 more") from None
    if total < run.minimum:
        raise UsageError(f"must be at least {run.minimum} in total, e.g. +{run.minimum - run.trained}")
    return total
