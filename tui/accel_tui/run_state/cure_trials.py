"""Trials of cures, as the screen sees them: their progress and what they measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from accel_engine.advice import Finding

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.advice.cures.cure_trial import CureProgress, CureResult


class TryCure(Protocol):
    """Measures some seconds of training with and without changes of a run's plan; blocks."""

    def __call__(
        self,
        directory: Path,
        finding: Finding,
        changes: Mapping[str, Any],
        on_progress: "Callable[[CureProgress], None]",
        *,
        should_stop: Callable[[], bool],
    ) -> "CureResult":
        """Try the changes, and compare what the finding is about.

        Raises:
            AccelError: They cannot be tried, or it was stopped.
        """


class ApplyCure(Protocol):
    """Applies changes to a run, live or ended, and takes them back if the run is clearly worse with them; blocks."""

    def __call__(
        self,
        directory: Path,
        finding: Finding,
        changes: Mapping[str, Any],
        on_progress: Callable[[str], object],
        *,
        should_stop: Callable[[], bool],
    ) -> str:
        """Apply the changes for a finding; return what was done, in words.

        Raises:
            AccelError: They cannot be applied, or it was stopped, after which they stay applied.
        """


@dataclass(frozen=True, slots=True)
class CureActions:
    """What can be done with a cure."""

    try_cure: TryCure
    apply_cure: ApplyCure


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a cure: in progress, failed or measured.

    Attributes:
        progress: How far it is; ``None`` before that is known.
        result: What it measured; ``None`` before its end.
        problem: Why it failed; empty if it did not.
    """

    progress: "CureProgress | None" = None
    result: "CureResult | None" = None
    problem: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it is in progress."""
        return self.result is None and not self.problem


@dataclass(frozen=True, slots=True)
class Application:
    """A cure that is applied.

    Attributes:
        text: What was done so far, in words.
        problem: Why it could not be applied; empty if it could.
        is_running: Whether it is still being applied, or compared.
    """

    text: str = ""
    problem: str = ""
    is_running: bool = False


@dataclass
class AdviceNotes:
    """What the dashboard remembers of the advice on a run while it is open.

    Attributes:
        trials: The trials by the changes of the plan, as options.
        applied: What was applied, by the same.
        selected: The selected finding.
        on_change: Called when trials or what was applied have changed; set by the screen that shows them.
    """

    trials: dict[str, Trial] = field(default_factory=dict)
    applied: dict[str, Application] = field(default_factory=dict)
    selected: str = ""
    on_change: Callable[[], object] = lambda: None
