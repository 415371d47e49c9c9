"""Trials of cures, as the screen sees them: their progress and what they measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


class CureProgress(Protocol):
    """How far a trial is."""

    @property
    def done(self) -> float:
        """Seconds done."""

    @property
    def of(self) -> float:
        """Seconds in all, about."""

    @property
    def detail(self) -> str:
        """What it does now."""


class CureResult(Protocol):
    """What a cure gains."""

    @property
    def before(self) -> float:
        """The measured value without it; infinite where memory ran out."""

    @property
    def after(self) -> float:
        """The same with it."""

    @property
    def unit(self) -> str:
        """The unit of both."""

    @property
    def low(self) -> float:
        """The lower end of the interval of the value with it; infinite if unknown."""

    @property
    def high(self) -> float:
        """The upper end."""

    @property
    def better(self) -> bool:
        """Whether it is better, and that is no chance."""

    @property
    def text(self) -> str:
        """All of it in words."""


class TryCure(Protocol):
    """Measures some seconds of training with and without changes of a run's plan; blocks."""

    def __call__(
        self,
        directory: Path,
        changes: Mapping[str, Any],
        on_progress: Callable[[CureProgress], None],
        *,
        should_stop: Callable[[], bool],
    ) -> CureResult:
        """Try the changes.

        Raises:
            AccelError: They cannot be tried, or it was stopped.
        """


ApplyCure = Callable[[Path, Mapping[str, Any]], str]
"""Applies changes to a run, live or ended; returns what was done. Blocks, and raises an ``AccelError``."""


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

    progress: CureProgress | None = None
    result: CureResult | None = None
    problem: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it is in progress."""
        return self.result is None and not self.problem


@dataclass
class AdviceNotes:
    """What the dashboard remembers of the advice on a run while it is open.

    Attributes:
        trials: The trials by the changes of the plan, as options.
        selected: The selected finding.
    """

    trials: dict[str, Trial] = field(default_factory=dict)
    selected: str = ""
