"""What advice on a run consists of: findings with their evidence, and cures with the gain to expect."""

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
    """What a finding follows from.

    Attributes:
        text: The figures, in a sentence.
        series: The series that shows them, with ``validation_`` before one of validation; empty if none does.
        steps: The first step and the step after the last one that they are from; ``None`` for the whole run.
    """

    text: str
    series: str = ""
    steps: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """What a cure is expected to gain.

    Attributes:
        text: The gain in words, such as ``1.5 times the steps per second``.
        basis: What the figure is based on, such as ``the measured share of the time``.
        factor: By how much training becomes faster; ``None`` if the gain is not one of speed.
    """

    text: str
    basis: str
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class Cure:
    """What can be done about a finding.

    Attributes:
        text: What to do, in words, for runs of this program; an option of the command line where there is one.
        changes: Fields of the plan to change, with their new values; empty if the plan cannot help.
        script: What to do in a script with Keras, in words; empty if it is the same.
        gain: What to expect; ``None`` if that cannot be known.
    """

    text: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    script: str = ""
    gain: Gain | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A trouble of a run.

    Attributes:
        id: A stable name, such as ``input-wait``.
        category: Its kind.
        title: A line of at most 60 characters.
        evidence: What it follows from, the most telling first.
        confidence: How sure it is.
        cost: What it costs, such as ``42% of the training time``.
        cures: What can be done, the best first.
        weight: How much it matters, from 0 to 1: the share of time that is lost, or of what the model could learn.
    """

    id: str
    category: Category
    title: str
    evidence: tuple[Evidence, ...]
    confidence: Confidence
    cost: str
    cures: tuple[Cure, ...] = ()
    weight: float = 0.5

    @property
    def steps(self) -> tuple[int, int] | None:
        """The steps of the first evidence that has any."""
        return next((each.steps for each in self.evidence if each.steps), None)


speed_finding = partial(Finding, category=Category.SPEED)
"""A finding on a slow run."""

memory_finding = partial(Finding, category=Category.MEMORY)
"""A finding on a run that is short of memory."""
