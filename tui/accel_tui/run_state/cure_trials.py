"""Trials of cures, and what was applied, as the screen sees them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.race.cure_race import CureProgress, CureRace


@dataclass(frozen=True, slots=True)
class CureTrial:
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
class Application:
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
class AdviceNotes:
    """What the dashboard remembers of the advice on a run while it is open."""

    trials: dict[str, CureTrial] = field(default_factory=dict)
    """The trials by the changes of the plan, as options."""
    applied: dict[str, Application] = field(default_factory=dict)
    """What was applied, by the same; taking back is without options."""
    selected: str = ""
    """The selected finding."""
    on_change: Callable[[], object] = lambda: None
    """Called when trials or what was applied have changed; set by the screen that shows them."""

    @property
    def is_applied(self) -> bool:
        """Whether something was applied that can be taken back."""
        return any(each.text for options, each in self.applied.items() if options)
