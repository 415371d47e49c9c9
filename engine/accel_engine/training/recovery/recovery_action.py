"""What a run does about trouble, to continue by itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accel_engine.plan import Plan


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """How a run continues after trouble.

    Attributes:
        trouble: That of :class:`accel_engine.events.Recovered`.
        reason: What happened, for the user.
        action: The remedy, for the user.
        step: The step of the checkpoint that training continues from; 0 for the start.
        changes: Fields of the plan that change, with their new values.
        streams_data: Whether the training examples are no longer cached on the devices.
        needs_process: Whether the run should continue in a new process: the host's memory ran out, which this one does
            not give back.
    """

    trouble: str
    reason: str
    action: str
    step: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    streams_data: bool = False
    needs_process: bool = False


@dataclass(frozen=True, slots=True)
class NewProcess:
    """A run that continues in a new process.

    Attributes:
        plan: The plan, with the changes of the repair.
        repair: The repair.
        failed_step: Steps taken.
    """

    plan: Plan
    repair: RecoveryAction
    failed_step: int
