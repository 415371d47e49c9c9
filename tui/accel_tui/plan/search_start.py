"""Questions to the user before a search of the form's ranges starts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accel_engine.plan.options import OptionSpec, option
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import DIRECTION_OF_MODE, Parameter, SearchOptions, objectives_of
from accel_engine.search.new_study import default_monitor, default_study_name
from accel_tui.plan.search_fields import looks_like_range


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStart(SearchOptions):
    """The options of a search, with the monitor, which commands have as a field of the plan.

    Raises:
        UsageError: The monitor is not a metric, or it is unknown whether larger is better.
    """

    monitor: str = option("", OptionSpec("Metric by which trials are compared, e.g. val_loss.", str, read=str.strip))

    def __post_init__(self) -> None:
        objectives_of(self.monitor, self.objectives, self.direction)

    def with_parameters(self, parameters: Sequence[Parameter]) -> "SearchStart":
        """The same with what varies; its direction, which may follow from the monitor's name, is set."""
        monitor, *_ = objectives_of(self.monitor, self.objectives, self.direction)
        direction = "maximize" if monitor.maximize else "minimize"
        return replace(self, parameters=parameters, monitor=monitor.name, direction=direction)


ROWS = ("name", "trials", "monitor", "direction", "within")
"""The options that are asked for."""


def first_texts(filled: ResolvedPlan) -> dict[str, str]:
    """The text of each option at first, where it is not the default.

    Args:
        filled: The form.
    """
    plan = filled.with_chosen_model().plan
    return {
        "name": default_study_name(plan.replace(name="") if looks_like_range(plan.name) else plan),
        "monitor": filled.plan.monitor or default_monitor(filled),
        "direction": DIRECTION_OF_MODE.get(filled.plan.monitor_mode, ""),
    }
