"""The parts of advice on a run: findings with their evidence, and cures with the gain to expect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any


class Category(StrEnum):
    """The kinds of troubles."""

    SPEED = "speed"
    MEMORY = "memory"
    QUALITY = "quality"


class Confidence(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures from which a finding follows."""

    text: str
    """The figures, in a sentence."""
    series: str = ""
    """The series that shows them, with ``validation_`` before one of validation; empty if none does."""
    steps: tuple[int, int] | None = None
    """The first step and the step after the last one that they are from; ``None`` for the whole run."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain that a cure is expected to have."""

    text: str
    """The gain in words, such as ``1.5 times the steps per second``."""
    basis: str
    """What the figure is based on, such as ``the measured share of the time``."""
    factor: float | None = None
    """By how much training becomes faster; ``None`` if the gain is not one of speed."""


@dataclass(frozen=True, slots=True)
class Cure:
    """A change that helps against the trouble of a finding."""

    text: str
    """What to do, in words, for runs of this program; an option of the command line where there is one."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the plan to change, with their new values; empty if the plan cannot help."""
    script: str = ""
    """The same for a script with Keras; empty if it does not differ."""
    gain: Gain | None = None
    """The expected gain; ``None`` if it cannot be known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A trouble of a run."""

    id: str
    """A stable name, such as ``input-wait``."""
    category: Category
    """Its kind."""
    title: str
    """A line of at most 60 characters."""
    evidence: tuple[Evidence, ...]
    """The figures from which it follows, the most important first."""
    confidence: Confidence
    """How sure it is."""
    cost: str
    """The loss by the trouble, such as ``42% of the training time``."""
    cures: tuple[Cure, ...] = ()
    """The cures, the best first."""
    weight: float = 0.5
    """How much it matters, from 0 to 1: the share of time that is lost, or of what the model could learn."""

    @property
    def steps(self) -> tuple[int, int] | None:
        """The steps of the first evidence that has any."""
        return next((each.steps for each in self.evidence if each.steps), None)


speed_finding = partial(Finding, category=Category.SPEED)
"""A finding on a slow run."""

memory_finding = partial(Finding, category=Category.MEMORY)
"""A finding on a run that is short of memory."""
