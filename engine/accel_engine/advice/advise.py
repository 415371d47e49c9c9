"""Advises on a run: applies all rules, and puts what matters most first."""

from accel_engine.advice import memory, poor, slow
from accel_engine.advice.finding import Confidence, Finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.rule import Rule

RULES: tuple[Rule, ...] = (*slow.RULES, *memory.RULES, *poor.RULES)
"""All rules."""

_SURE = {Confidence.CERTAIN: 1.0, Confidence.LIKELY: 0.8, Confidence.POSSIBLE: 0.4}


def advise(recorded: Recorded) -> tuple[Finding, ...]:
    """Find the troubles of a run, those that matter most first; none of a healthy one."""
    found = [finding for rule in RULES for finding in rule(recorded)]
    return tuple(sorted(found, key=lambda finding: -finding.weight * _SURE[finding.confidence]))
