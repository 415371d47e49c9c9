"""Chooses how a run continues after a failure."""

from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.training.recovery.repair import Repair


class Recovery:
    """Finds the repair of a failure; remembers those before it, whose number is limited."""

    def __init__(self) -> None:
        self._repairs: list[Repair] = []

    def repair(self, error: BaseException, resolved: ResolvedPlan, step: int) -> Repair | None:
        """The repair of a failure; ``None`` if the run has to end.

        Args:
            error: What training raised.
            resolved: The plan that was trained.
            step: Steps taken.
        """
        del error, resolved, step
        return None
