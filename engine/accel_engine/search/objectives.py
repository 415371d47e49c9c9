"""The objectives of a search: metrics that trials report, and figures of their runs."""

from collections.abc import Sequence

from accel_engine.errors import UsageError
from accel_engine.plan.monitor import is_better_lower
from accel_engine.plan.task_choices import metric_name
from accel_engine.search.definition import Objective

FIGURES = {
    "time": "seconds of training, without validation and checkpoints",
    "memory": "most bytes of a device that the engine has used",
    "latency": "median seconds of a prediction for one example",
}
"""Objectives that are no metrics, with what they are; lower is better."""

DIRECTIONS = ("maximize", "minimize")

DIRECTION_OF_MODE = {"min": "minimize", "max": "maximize"}
"""The direction of a plan's ``monitor_mode``, unless that is ``auto``."""


def objective_of(name: str, direction: str = "") -> Objective:
    """An objective.

    Args:
        name: A metric, or one of :data:`FIGURES`.
        direction: One of :data:`DIRECTIONS`; empty to follow from the name.

    Raises:
        UsageError: The name does not tell the direction, or there is none.
    """
    name = metric_name(name)
    if not name:
        raise UsageError("an objective has no name: use a metric, such as val_accuracy, or time, memory or latency")
    if direction and direction not in DIRECTIONS:
        raise UsageError(f"{direction!r} is no direction: use {' or '.join(DIRECTIONS)}")
    if direction:
        return Objective(name, direction == "maximize")
    lower = True if name in FIGURES else is_better_lower(name)
    if lower is None:
        raise UsageError(
            f"the name {name} does not tell whether larger values are better: if the model measures it, "
            "choose the direction maximize or minimize"
        )
    return Objective(name, not lower)


def objectives_of(monitor: str, further: Sequence[str], direction: str = "") -> tuple[Objective, ...]:
    """The objectives of a search.

    Args:
        monitor: The first one, a metric.
        further: Others.
        direction: Of the monitor; empty to follow from its name.

    Raises:
        UsageError: The monitor is no metric, one is given twice, or a direction is unknown.
    """
    if monitor in FIGURES:
        raise UsageError(f"the monitor is a metric, unlike {monitor}: add --objective {monitor} besides it")
    found = (objective_of(monitor, direction), *map(objective_of, further))
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"{twice} is an objective twice")
    return found


def better(objective: Objective, first: float, second: float) -> bool:
    """Whether the first value is better than the second."""
    return first > second if objective.maximize else first < second
