"""The change that a run makes after trouble, to continue by itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accel_engine.plan import Plan


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """How a run continues after trouble."""

    trouble: str
    """As ``trouble`` of :class:`accel_engine.events.Recovered`."""
    reason: str
    """The trouble in words, for the user."""
    action: str
    """The remedy, for the user."""
    step: int
    """The step of the checkpoint that training continues from; 0 for the start."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the plan that change, with their new values."""
    streams_data: bool = False
    """Whether the training examples are no longer cached on the devices."""
    needs_process: bool = False
    """Whether the run should continue in a new process: the host's memory ran out, which this one does not give
    back."""


@dataclass(frozen=True, slots=True)
class NewProcess:
    """A run that continues in a new process."""

    plan: Plan
    """The plan, with the changes of the repair."""
    repair: RecoveryAction
    failed_step: int
    """Steps taken."""
