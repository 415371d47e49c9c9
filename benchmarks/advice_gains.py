"""Tries the cures that ``advice.py`` was given for its faults: some seconds with and without each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine.advice import Finding
from accel_engine.advice.cures.cure_task import PURPOSES, Quantity
from accel_engine.advice.cures.cure_trial import CureResult, try_cure
from accel_engine.errors import AccelError
from accel_engine.plan.changed_plan import options_text
from accel_engine.plan.monitor import is_better_lower

SECONDS = 6.0
"""How long a trial takes turns."""


class Verdict(StrEnum):
    """What a trial says of a cure."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference"
    NOT_TRIED = "cannot be tried"


@dataclass(frozen=True)
class Trial:
    """A cure that was tried.

    Attributes:
        run: Name of the case.
        finding: Id of the finding.
        changes: What the cure changes.
        result: What was measured; ``None`` if it cannot be tried.
        problem: Why it cannot.
    """

    run: str
    finding: str
    changes: Mapping[str, Any]
    result: CureResult | None = None
    problem: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the trial says."""
        return verdict(self.result) if self.result else Verdict.NOT_TRIED

    @property
    def row(self) -> str:
        """A row of the table."""
        cure = f"| `{self.run}` | {self.finding} | `{options_text(self.changes)}` |"
        if self.result is None:
            return f"{cure} | | | | cannot be tried: {self.problem} |"
        found = self.result
        return f"{cure} {found.before:.4g} | {found.after:.4g} | {found.unit} | {interval(found)} | {self.verdict} |"


HEADER = (
    "| fault | finding | cure | before | after | unit | 95% interval of after | |",
    "|---|---|---|---|---|---|---|---|",
)


def try_cures(run: str, directory: Path, finding: Finding) -> list[Trial]:
    """Try all cures of a finding that change the plan.

    Args:
        run: Name of the case.
        directory: Its run.
        finding: The finding.
    """
    quantity = PURPOSES[finding.trouble]
    return [_trial(run, directory, finding.id, cure.changes, quantity) for cure in finding.cures if cure.changes]


def _trial(run: str, directory: Path, finding: str, changes: Mapping[str, Any], quantity: Quantity) -> Trial:
    try:
        result = try_cure(directory, changes, lambda _: None, seconds=SECONDS, quantity=quantity)
    except AccelError as error:
        return Trial(run, finding, changes, problem=str(error))
    return Trial(run, finding, changes, result)


def verdict(result: CureResult) -> Verdict:
    """Whether a cure is better or worse, as far as its interval tells."""
    if result.better:
        return Verdict.BETTER
    if not math.isfinite(result.after):
        return Verdict.WORSE if math.isfinite(result.before) else Verdict.NO_DIFFERENCE
    is_lower_better = is_better_lower(result.unit.replace(" ", "_")) is not False and not result.unit.endswith("/s")
    is_worse = result.low > result.before if is_lower_better else result.high < result.before
    return Verdict.WORSE if is_worse else Verdict.NO_DIFFERENCE


def interval(result: CureResult) -> str:
    """The interval of the value with the cure; empty for one of memory, or with too few rounds."""
    if result.low == result.high or not (math.isfinite(result.low) and math.isfinite(result.high)):
        return ""
    return f"{result.low:.4g} to {result.high:.4g}"


def gains(trials: list[Trial]) -> str:
    """How many cures are better, worse, or neither, in words."""
    counts = {each: sum(trial.verdict is each for trial in trials) for each in Verdict}
    return f"{len(trials)} cures: " + ", ".join(f"{count} {each}" for each, count in counts.items())
