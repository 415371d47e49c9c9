"""Advice on a run: a pure function from what it has recorded to findings, with their evidence and cures.

Each kind of trouble has a package of rules, one module per subject. A rule takes a :class:`Recorded` and yields
findings. Silence is the normal state: a rule that is not sure says nothing.
"""

from accel_engine.advice.advise import Coverage, coverage, find_cure, find_troubles
from accel_engine.advice.finding import Category, Confidence, Cure, Evidence, Finding, Gain
from accel_engine.advice.recorded import FasterPlan, Recorded, read_recorded
from accel_engine.advice.rule import FailedRule

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
