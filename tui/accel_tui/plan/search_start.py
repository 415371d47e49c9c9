"""What a user is asked before a search of the form's ranges starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from accel_engine.plan import Plan
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import DIRECTION_OF_MODE, Objective, Parameter, SearchOptions, objectives_of
from accel_engine.search.new_study import default_monitor, default_study_name
from accel_engine.search.study_paths import study_directory
from accel_tui.plan.search_fields import looks_like_range
from accel_tui.plan.whole_number import parse_count


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search to begin.

    Attributes:
        plan: The plan; its monitor is the search's.
        options: All else.
    """

    plan: Plan
    options: SearchOptions


def default_texts(filled: ResolvedPlan) -> dict[str, str]:
    """The text of each question at first.

    Args:
        filled: The form.
    """
    plan = filled.with_chosen_model().plan
    monitor, direction = filled.plan.monitor or default_monitor(filled), DIRECTION_OF_MODE.get(filled.plan.monitor_mode)
    return {
        "name": default_study_name(plan.replace(name="") if looks_like_range(plan.name) else plan),
        "trials": str(SearchOptions().trials),
        "monitor": f"{monitor} {direction}" if direction else monitor,
        "within": "",
    }


def parse_monitor(text: str) -> Objective:
    """Parse a monitor: a metric, with ``maximize`` or ``minimize`` after it where its name does not tell.

    Raises:
        UsageError: There is none, or it is unknown whether larger is better.
    """
    name, _, direction = text.strip().partition(" ")
    return objectives_of(name, (), direction.strip())[0]


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


def parse_within(text: str) -> str:
    """Check a time limit, which may be empty.

    Raises:
        PlanError: It is no duration.
    """
    if text.strip():
        parse_duration("within", text)
    return text.strip()


PARSERS: Mapping[str, Callable[[str], object]] = {
    "name": parse_name,
    "trials": parse_trials,
    "monitor": parse_monitor,
    "within": parse_within,
}
"""Parses the answer to each question."""


def search_request(plan: Plan, parameters: Sequence[Parameter], texts: Mapping[str, str]) -> SearchRequest:
    """The search of a form.

    Args:
        plan: The plan of the form.
        parameters: What varies.
        texts: The answer to each question.

    Raises:
        UsageError: One is invalid.
    """
    monitor = parse_monitor(texts["monitor"])
    options = SearchOptions(
        parameters=parameters,
        name=parse_name(texts["name"]),
        direction="maximize" if monitor.maximize else "minimize",
        trials=parse_trials(texts["trials"]),
        within=parse_within(texts["within"]),
    )
    return SearchRequest(plan.replace(monitor=monitor.name), options)
