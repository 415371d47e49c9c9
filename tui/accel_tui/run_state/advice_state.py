"""The state of the advice on a run: trials of cures, and the cures that are applied."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.race.cure_race import CureProgress, CureRace


@dataclass(frozen=True, slots=True)
class CureTrialState:
    """A trial of a cure: in progress, failed or measured."""

    progress: "CureProgress | None" = None
    """How far it is; ``None`` before that is known."""
    result: "CureRace | None" = None
    """What it measured; ``None`` before its end."""
    problem: str = ""
    """Why it failed; empty if it did not."""

    @property
    def is_running(self) -> bool:
        """Whether it is in progress."""
        return self.result is None and not self.problem


@dataclass(frozen=True, slots=True)
class AppliedCureState:
    """A cure that is applied."""

    text: str = ""
    """What was done, in words; empty while it is being applied."""
    problem: str = ""
    """Why it could not be applied; empty if it could."""

    @property
    def is_running(self) -> bool:
        """Whether it is being applied."""
        return not self.text and not self.problem


@dataclass
class AdviceState:
    """The state of the advice on a run, which the dashboard keeps while it is open."""

    trials: dict[str, CureTrialState] = field(default_factory=dict)
    """The trials by the changes of the plan, as options."""
    applied: dict[str, AppliedCureState] = field(default_factory=dict)
    """The applied cures, by the same; the key of taking back is empty."""
    selected: str = ""
    """The selected finding."""
    on_change: Callable[[], object] = lambda: None
    """Called when trials or what was applied have changed; set by the screen that shows them."""

    @property
    def is_applied(self) -> bool:
        """Whether something was applied that can be taken back."""
        return any(each.text for options, each in self.applied.items() if options)
