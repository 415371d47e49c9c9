"""Advice on a run: a pure function from what it has recorded to findings, with their evidence and cures.

Each kind of trouble has a package of rules, one module per subject. A rule takes a :class:`Recorded` and yields
findings. Silence is the normal state: a rule that is not sure says nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.advice import memory, quality, speed
from accel_engine.advice.finding import Category, Confidence, Cure, Evidence, Finding, Gain
from accel_engine.advice.recorded import FasterPlan, Recorded, read_recorded
from accel_engine.advice.rule import FailedRule, Rule, RulesFailedError, apply_rules
from accel_engine.errors import UsageError
from accel_engine.events import TimeMeasured

__all__ = [
    "Category",
    "Confidence",
    "Coverage",
    "Cure",
    "Evidence",
    "FailedRule",
    "FasterPlan",
    "Finding",
    "Gain",
    "Recorded",
    "coverage",
    "find_cure",
    "find_troubles",
    "read_recorded",
]

RULES: tuple[Rule, ...] = (*speed.RULES, *memory.RULES, *quality.RULES)
"""All rules."""

_SURE = {Confidence.CERTAIN: 1.0, Confidence.LIKELY: 0.8, Confidence.POSSIBLE: 0.4}


def find_troubles(recorded: Recorded, failed: list[FailedRule] | None = None) -> tuple[Finding, ...]:
    """Find the troubles of a run, the most important first; none in a healthy one.

    Args:
        recorded: What the run has recorded.
        failed: Rules that fail are appended, and the findings of the others returned.

    Raises:
        RulesFailedError: A rule failed, and there is no ``failed``.
    """
    failures = list[FailedRule]()
    found = list(apply_rules(RULES, recorded, failures))
    if failed is not None:
        failed += failures
    elif failures:
        raise RulesFailedError(failures) from failures[0].error
    return tuple(sorted(found, key=lambda finding: -finding.weight * _SURE[finding.confidence]))


def find_cure(run: str, findings: Sequence[Finding], name: str, number: int = 1) -> tuple[Finding, Cure]:
    """Find a finding by its id, and one of its cures that change the plan.

    Args:
        run: The run's id.
        findings: Its findings.
        name: The finding's id.
        number: Which of these cures, from 1.

    Raises:
        UsageError: The run has no such finding, or the finding has no cure of this number that changes the plan.
    """
    named = {each.id: each for each in findings}
    if name not in named:
        raise UsageError(f"run {run} has no finding {name}; found: {', '.join(named) or 'nothing'}")
    cures = [cure for cure in named[name].cures if cure.changes]
    if not cures:
        words = "; ".join(cure.text for cure in named[name].cures) or "no cure is known"
        raise UsageError(f"finding {name} has no cure that changes the plan: {words}")
    if not 1 <= number <= len(cures):
        raise UsageError(f"finding {name} has {len(cures)} cures that change the plan, not {number}")
    return named[name], cures[number - 1]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a run's records there is to judge."""

    steps: int = 0
    """Number of recorded steps."""
    epochs: int = 0
    """Number of ended epochs."""
    validations: int = 0
    """Number of validations."""
    readings: int = 0
    """Number of times that devices were read."""
    missing: tuple[str, ...] = ()
    """What was not recorded and so not judged, in words."""


def coverage(recorded: Recorded) -> Coverage:
    """Count what a run has recorded, and name what it has not."""
    stored = recorded.diagnostics
    has_time = recorded.last(TimeMeasured) is not None
    there = {
        "steps": recorded.steps > 0,
        "validations": bool(recorded.validations),
        "readings of devices": bool(recorded.samples),
        "time by activity": has_time,
        "layers": stored.layers is not None,
        "validation examples": stored.validation is not None,
        "the plan": recorded.plan is not None,
    }
    return Coverage(
        steps=recorded.steps,
        epochs=len(recorded.epochs),
        validations=len(recorded.validations),
        readings=len(recorded.samples),
        missing=tuple(name for name, is_there in there.items() if not is_there),
    )
