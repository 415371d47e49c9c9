"""Advice in words, for the command and the screen."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from accel_engine.advice import Coverage, Cure, Evidence
from accel_engine.plan.changed_plan import changed_plan, options_text
from accel_engine.process.start_run import CONTINUABLE
from accel_engine.run import RunInfo, Status
from accel_engine.run.runs.plan_changes import CHANGEABLE
from accel_engine.text import shell_command
from accel_engine.words import numbers


def coverage_text(coverage: Coverage) -> str:
    """The records that were judged: ``1,200 steps, 3 epochs, 3 validations, 45 readings``."""
    parts = (
        (coverage.steps, "step"),
        (coverage.epochs, "epoch"),
        (coverage.validations, "validation"),
        (coverage.readings, "reading"),
    )
    return ", ".join(numbers.counted(number, noun) for number, noun in parts if number) or "no records"


def missing_text(coverage: Coverage) -> str:
    """The records that are missing, and so not judged; empty for none."""
    return f"Not judged, as not recorded: {', '.join(coverage.missing)}." if coverage.missing else ""


def failures_text(failed: Sequence[str]) -> str:
    """Which rules failed; empty if none did."""
    return f"Internal error: {numbers.counted(len(failed), 'rule')} failed: {'; '.join(failed)}." if failed else ""


def evidence_text(evidence: Evidence) -> str:
    """The figures, with the steps that they are from."""
    text = capitalized(evidence.text)
    if evidence.steps is None:
        return text
    first, stop = evidence.steps
    steps = f"step {first:,}" if stop <= first + 1 else f"steps {first:,} to {stop - 1:,}"
    return f"{text} ({steps})"


def cure_text(cure: Cure, info: RunInfo) -> str:
    """The instruction of a cure, for the program or the script that trains the run."""
    return capitalized(cure.text if info.has_engine or not cure.script else cure.script)


def capitalized(text: str) -> str:
    """The text with a capital letter, unless it begins with code."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,:]", text) else text


def can_continue_with(changes: Mapping[str, Any]) -> bool:
    """Whether a run can continue from its checkpoint with these changes; else they need a new run."""
    return bool(changes) and CHANGEABLE.issuperset(changes)


def continue_command(info: RunInfo) -> str:
    """The command that continues an ended run; a finished one has trained its epochs, and needs more of them."""
    more = ["--epochs", f"+{info.plan_values['epochs']}"] if info.status is Status.FINISHED else []
    return shell_command(["accel-tui", "continue", info.id, *more])


def change_command(info: RunInfo, changes: Mapping[str, Any]) -> str:
    """The command that trains with changes: continues a run that ended early if its checkpoint allows them, else anew.

    Empty for a run without a plan, and without changes.

    Raises:
        PlanError: A value does not fit its field, or another one.
    """
    if not changes or info.plan is None or not info.has_engine:
        return ""
    if can_continue_with(changes) and info.status in CONTINUABLE:
        return f"{continue_command(info)} {options_text(changes)}"
    return changed_plan(info.plan, changes).command()
