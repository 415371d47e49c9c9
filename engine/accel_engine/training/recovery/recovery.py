"""Chooses how a run continues after a failure."""

from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.writer import RunWriter
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.recovery.out_of_memory import OutOfMemory
from accel_engine.training.recovery.repair import Repair


class Recovery:
    """Finds the repair of a failure; remembers those before it, whose number is limited.

    Args:
        run: The run.
        is_remat_tried: Whether another process has chosen rematerialization, as memory ran out.
    """

    def __init__(self, run: RunWriter, *, is_remat_tried: bool = False) -> None:
        self._memory = OutOfMemory(run, is_remat_tried=is_remat_tried)

    def note(self, assembly: Assembly) -> None:
        """Take note of what is trained, before it is."""
        self._memory.note(assembly)

    def repair(
        self, error: BaseException, resolved: ResolvedPlan, step: int, *, compiled: bool = False
    ) -> Repair | None:
        """The repair of a failure; ``None`` if the run has to end.

        Args:
            error: What training raised.
            resolved: The plan that was trained.
            step: Steps taken.
            compiled: Whether another execution mode was compiled beside the training.
        """
        return self._memory.repair(error, resolved, step, compiled=compiled)
