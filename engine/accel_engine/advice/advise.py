"""Advises on a run: applies all rules, and puts what matters most first."""

from accel_engine.advice import memory, poor, slow
from accel_engine.advice.finding import Confidence, Finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.rule import FailedRule, Rule, RulesFailedError, apply_rules

RULES: tuple[Rule, ...] = (*slow.RULES, *memory.RULES, *poor.RULES)
"""All rules."""

_SURE = {Confidence.CERTAIN: 1.0, Confidence.LIKELY: 0.8, Confidence.POSSIBLE: 0.4}


def advise(recorded: Recorded, failed: list[FailedRule] | None = None) -> tuple[Finding, ...]:
    """Find the troubles of a run, those that matter most first; none of a healthy one.

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
