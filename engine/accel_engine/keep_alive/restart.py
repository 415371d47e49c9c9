"""Why an engine was started again, which the process that does so tells the new engine."""

import os
from dataclasses import dataclass, field
from typing import Self

from accel_engine import clock
from accel_engine.events import Recovered
from accel_engine.json_values import Count, JsonValue, Text, decode_or_none, encode

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

    trouble: Text
    failed_step: Count
    reason: Text
    action: Text
    changes: dict[str, JsonValue] = field(default_factory=dict)
    variables: dict[str, Text] = field(default_factory=dict)

    @classmethod
    def take(cls) -> Self | None:
        """The restart that started this process; ``None`` for any other start. No child process has it."""
        return decode_or_none(os.environ.pop(_VARIABLE, ""), cls)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the new engine."""
        return {**self.variables, _VARIABLE: encode(self)}

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
