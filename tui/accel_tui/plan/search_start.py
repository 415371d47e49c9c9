"""What a user is asked before a search of the form's ranges starts."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from accel_engine.errors import UsageError
from accel_engine.models.data_description import describe_entry
from accel_engine.plan import Plan
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.monitor import measured_names
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.series_names import VALIDATION_PREFIX, infer_monitor, is_better_lower
from accel_engine.search.definition import Objective, Parameter, StudyDefinition
from accel_engine.search.study_paths import study_directory
from accel_tui.formatting import names
from accel_tui.plan.whole_number import parse_count

TRIALS = 40
"""Trials unless the user chooses others."""

DIRECTIONS = {"max": True, "min": False}
"""Words after a monitor whose name does not tell whether larger is better, with whether it is."""

_OF_SEARCH = ("name", "seed", "monitor", "monitor_mode")


def default_texts(filled: ResolvedPlan, taken: Collection[str]) -> dict[str, str]:
    """The text of each question at first.

    Args:
        filled: The form.
        taken: Names of existing searches.
    """
    plan = filled.plan
    words = re.sub(r"[^\w.-]+", "-", f"{names.base_name(plan.data)}-{names.base_name(plan.model)}").strip("-._")
    base = (plan.name or words)[:50] or "search"
    numbered = (f"{base}-{number}" for number in range(2, len(taken) + 3))
    name = base if base not in taken else next(each for each in numbered if each not in taken)
    return {"name": name, "trials": str(TRIALS), "monitor": plan.monitor or default_monitor(filled), "within": ""}


def default_monitor(filled: ResolvedPlan) -> str:
    """The metric that counts if the plan names none: the accuracy of validation, or else its loss."""
    plan = filled.plan
    described = describe_entry(filled.data, plan.task)
    task = plan.task if plan.task != "auto" else described.learned_task if described else "auto"
    return f"{VALIDATION_PREFIX}{infer_monitor(measured_names(plan, task), task)}"


def parse_monitor(text: str) -> Objective:
    """Parse a monitor: a metric, and ``max`` or ``min`` after it where its name does not tell.

    Raises:
        UsageError: There is none, or it is unknown whether larger is better.
    """
    name, _, direction = text.strip().partition(" ")
    if not name:
        raise UsageError("must be a metric, e.g. validation_accuracy")
    name = f"{VALIDATION_PREFIX}{name.removeprefix('val_')}" if name.startswith("val_") else name
    if direction.strip() and direction.strip() not in DIRECTIONS:
        raise UsageError(f"{direction.strip()!r} is no direction: write max or min after the metric")
    lower = is_better_lower(name)
    if not direction.strip() and lower is None:
        raise UsageError(f"the name {name} does not tell whether larger is better: write max or min after it")
    return Objective(name, DIRECTIONS[direction.strip()] if direction.strip() else not lower)


def parse_name(text: str) -> str:
    """Parse the name of a search.

    Raises:
        UsageError: No search can have it.
    """
    study_directory(text.strip())
    return text.strip()


def parse_trials(text: str) -> int:
    """Parse a number of trials.

    Raises:
        UsageError: It is none.
    """
    return parse_count(text, "trials")


def parse_within(text: str) -> float | None:
    """Parse a time limit in seconds; ``None`` for an empty text.

    Raises:
        PlanError: It is no duration.
    """
    return parse_duration("within", text) if text.strip() else None


PARSERS: Mapping[str, Callable[[str], object]] = {
    "name": parse_name,
    "trials": parse_trials,
    "monitor": parse_monitor,
    "within": parse_within,
}
"""Parses the answer to each question."""


def define(plan: Plan, parameters: Sequence[Parameter], texts: Mapping[str, str]) -> StudyDefinition:
    """The definition of a search.

    Args:
        plan: The plan of the form.
        parameters: What varies.
        texts: The answer to each question.

    Raises:
        UsageError: One is invalid.
    """
    own = {*_OF_SEARCH, *(each.name for each in parameters)}
    return StudyDefinition(
        name=parse_name(texts["name"]),
        plan={name: value for name, value in plan.absolute().changed().items() if name not in own},
        parameters=tuple(parameters),
        objectives=(parse_monitor(texts["monitor"]),),
        trials=parse_trials(texts["trials"]),
        within=parse_within(texts["within"]),
        seed=plan.seed,
    )
