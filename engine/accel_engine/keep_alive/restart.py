"""Why an engine was started again, which the process that does so tells the new engine."""

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from accel_engine import clock
from accel_engine.events import Recovered
from accel_engine.stored_values import make, parse_object

_VARIABLE = "ACCEL_TUI_RESTART"


@dataclass(frozen=True, slots=True)
class Restart:
    """The restart of an engine.

    Attributes:
        trouble: That of :class:`accel_engine.events.Recovered`.
        failed_step: Steps that the lost engine had taken.
        reason: Why it was lost.
        action: What was done.
        changes: Fields of the plan that changed.
        variables: Environment variables that the new engine gets, as the lost one had them.
    """

    trouble: str
    failed_step: int
    reason: str
    action: str
    changes: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def take(cls) -> Self | None:
        """The restart that started this process; ``None`` for any other start. No child process has it."""
        try:
            return make(cls, parse_object(os.environ.pop(_VARIABLE, "")))
        except ValueError:
            return None

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the new engine."""
        return {**self.variables, _VARIABLE: json.dumps(asdict(self))}

    def event(self, step: int) -> Recovered:
        """The event that records it, in a run that continues from a step."""
        return Recovered(
            time=clock.now(),
            trouble=self.trouble,
            step=step,
            failed_step=self.failed_step,
            reason=self.reason,
            action=self.action,
            changes=self.changes,
        )
