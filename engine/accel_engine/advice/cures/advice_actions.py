"""Tries and applies the cures of findings, by the finding's id: ``accel-tui advise --try ID`` and ``--apply ID``."""

from collections.abc import Callable
from pathlib import Path

from accel_engine.advice import Cure, Finding, Recorded, Trouble, advise, read_recorded
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.advice.cures.cure_trial import CureProgress, CureResult, try_cure
from accel_engine.advice.cures.settle_cure import SettledCure, apply_and_settle
from accel_engine.errors import UsageError
from accel_engine.process import run_change
from accel_engine.process.run_change import Launch

Read = Callable[[Path], Recorded]
"""Reads what a run has recorded."""

PURPOSES = {Trouble.SLOW: Quantity.SPEED, Trouble.MEMORY: Quantity.MEMORY, Trouble.POOR: Quantity.LEARNING}
"""What is compared of a run with a cure, by the trouble that it cures."""


def finding_with_cure(directory: Path, finding: str, number: int = 1, read: Read | None = None) -> tuple[Finding, Cure]:
    """Find a finding of a run by its id, and one of its cures that change the plan.

    Args:
        directory: The run's directory.
        finding: The finding's id.
        number: Which of these cures, from 1.
        read: Reads the run's records; by default without what races have measured.

    Raises:
        UsageError: There is none.
        RunError: The run cannot be read.
    """
    findings = {each.id: each for each in advise((read or read_recorded)(directory), [])}
    if finding not in findings:
        known = ", ".join(findings) or "nothing"
        raise UsageError(f"run {directory.name} has no finding {finding}; found: {known}")
    cures = [cure for cure in findings[finding].cures if cure.changes]
    if not cures:
        raise UsageError(f"finding {finding} has no cure that changes the plan: {_in_words(findings[finding])}")
    if not 1 <= number <= len(cures):
        raise UsageError(f"finding {finding} has {len(cures)} cures that change the plan, not {number}")
    return findings[finding], cures[number - 1]


def try_finding(
    directory: Path,
    finding: str,
    on_progress: Callable[[CureProgress], None],
    *,
    number: int = 1,
    seconds: float = 10.0,
    should_stop: Callable[[], bool] = lambda: False,
    read: Read | None = None,
) -> CureResult:
    """Try a cure of a finding, and compare what the finding is about; see :func:`try_cure`.

    Raises:
        AccelError: It cannot be tried, and why; or it was cancelled.
    """
    found, cure = finding_with_cure(directory, finding, number, read)
    return try_cure(
        directory,
        cure.changes,
        on_progress,
        seconds=seconds,
        should_stop=should_stop,
        quantity=PURPOSES[found.trouble],
    )


def apply_finding(
    directory: Path,
    finding: str,
    on_progress: Callable[[str], object] = lambda _: None,
    *,
    number: int = 1,
    should_stop: Callable[[], bool] = lambda: False,
    launch: Launch = run_change.launch,
    read: Read | None = None,
) -> SettledCure:
    """Apply a cure of a finding, and take it back if the run is clearly worse with it; see :func:`apply_and_settle`.

    Raises:
        AccelError: It cannot be applied, or taken back, and why; or it was cancelled, and stays applied.
    """
    found, cure = finding_with_cure(directory, finding, number, read)
    return apply_and_settle(
        directory,
        cure.changes,
        on_progress,
        finding=finding,
        purpose=PURPOSES[found.trouble],
        should_stop=should_stop,
        launch=launch,
    )


def _in_words(finding: Finding) -> str:
    return "; ".join(cure.text for cure in finding.cures) or "none is known"
