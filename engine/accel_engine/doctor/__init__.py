"""Checks this machine for problems, and suggests fixes.

The names of checks are stable, so that scripts and bug reports can rely on them. A name is a subject, or a
subject and a detail: ``tensorflow.import``.
"""

from accel_engine.doctor.all_checks import DEEP_CHECKS, checks_of, run_checks
from accel_engine.doctor.check import Check, CheckFinding, CheckReport, CheckResult, failed, passed, skipped, warned
from accel_engine.doctor.check_inputs import Machine

__all__ = [
    "DEEP_CHECKS",
    "Check",
    "CheckFinding",
    "CheckReport",
    "CheckResult",
    "Machine",
    "checks_of",
    "failed",
    "passed",
    "run_checks",
    "skipped",
    "warned",
]
