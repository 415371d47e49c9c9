"""Tries the cures that ``advice.py`` was given for its faults: some seconds with and without each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine.advice import Finding
from accel_engine.advice.cures.cure_task import PURPOSES, Quantity
from accel_engine.errors import AccelError
from accel_engine.plan.changed_plan import options_text
from accel_engine.plan.monitor import is_better_lower
from accel_engine.race.cure_race import CureRace, try_cure

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
    result: CureRace | None = None
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
        found = gain(self.result)
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
    quantity = PURPOSES[finding.category]
    return [_trial(run, directory, finding.id, cure.changes, quantity) for cure in finding.cures if cure.changes]


def _trial(run: str, directory: Path, finding: str, changes: Mapping[str, Any], quantity: Quantity) -> Trial:
    try:
        result = try_cure(directory, changes, lambda _: None, seconds=SECONDS, quantity=quantity)
    except AccelError as error:
        return Trial(run, finding, changes, problem=str(error))
    return Trial(run, finding, changes, result)


@dataclass(frozen=True)
class Gain:
    """What a race of a cure compares.

    Attributes:
        before: The value of the plan; infinite where memory ran out.
        after: The same with the cure.
        unit: Of both.
        between: The interval of the value with the cure; ``None`` for memory, and with too few rounds.
    """

    before: float
    after: float
    unit: str
    between: tuple[float, float] | None = None


def gain(raced: CureRace) -> Gain:
    """The values of a race."""
    without, cure = raced.results
    if raced.quantity is Quantity.SPEED:
        return Gain(without.examples_per_second or 0.0, cure.examples_per_second or 0.0, "examples/s", cure.between)
    if without.learned and cure.learned:
        return Gain(without.learned.value, cure.learned.value, cure.learned.metric, cure.learned.between)
    before, after = (math.inf if each.memory is None else each.memory / 2**30 for each in raced.results)
    return Gain(before, after, "GiB", (after, after))


def verdict(raced: CureRace) -> Verdict:
    """Whether a cure is better or worse, as far as its interval tells."""
    found = gain(raced)
    if raced.is_better:
        return Verdict.BETTER
    if not math.isfinite(found.after):
        return Verdict.WORSE if math.isfinite(found.before) else Verdict.NO_DIFFERENCE
    low, high = found.between or (-math.inf, math.inf)
    is_lower_better = is_better_lower(found.unit.replace(" ", "_")) is not False and not found.unit.endswith("/s")
    return Verdict.WORSE if (low > found.before if is_lower_better else high < found.before) else Verdict.NO_DIFFERENCE


def interval(found: Gain) -> str:
    """The interval of the value with the cure; empty for one of memory, or with too few rounds."""
    low, high = found.between or (0.0, 0.0)
    return "" if low == high else f"{low:.4g} to {high:.4g}"


def gains(trials: list[Trial]) -> str:
    """How many cures are better, worse, or neither, in words."""
    counts = {each: sum(trial.verdict is each for trial in trials) for each in Verdict}
    return f"{len(trials)} cures: " + ", ".join(f"{count} {each}" for each, count in counts.items())
