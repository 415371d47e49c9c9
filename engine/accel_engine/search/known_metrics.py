"""Refuses a monitor and objectives that no trial would measure, as far as it is known before a model is built."""

from collections.abc import Iterable, Sequence

from accel_engine import models
from accel_engine.errors import FieldValue, PlanError, UsageError, join_words
from accel_engine.models import ModelEntry, UserModel
from accel_engine.models.data_description import describe_entry
from accel_engine.plan.monitor import wrong_monitor
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.task_choices import metric_name
from accel_engine.search.definition import Parameter
from accel_engine.search.objectives import FIGURES


def check_metrics(
    resolved: ResolvedPlan, parameters: Iterable[Parameter], monitor: str, further: Sequence[str]
) -> None:
    """Check that the models of the catalogue measure what a search compares; models of users may measure anything.

    Args:
        resolved: The plan, with a survey of its data.
        parameters: What varies.
        monitor: The plan's monitor.
        further: Other objectives, metrics or figures.

    Raises:
        PlanError: The monitor is not measured, or there is no such model.
        UsageError: An objective is not measured.
    """
    described = describe_entry(resolved.data, resolved.plan.task)
    varied = {each.name: each.choices for each in parameters}
    is_own = any(isinstance(models.find(str(name)), UserModel) for name in varied.get("model", ()))
    if described is None or is_own or "task" in varied or not isinstance(resolved.model, ModelEntry):
        return
    for name in (monitor, *further):
        metric = metric_name(name)
        if metric in FIGURES:
            continue
        plan = resolved.plan.replace(monitor=metric)
        wrong = wrong_monitor(plan, described.learned_task, ("metrics",))
        if wrong and name is monitor:
            raise PlanError("monitor", metric, *wrong)
        if wrong:
            raise UsageError(f"the objective {metric}: {join_words(wrong, _option)}")


def _option(part: FieldValue) -> str:
    """A field of a message about an objective, which is given as one."""
    return f"--objective {part.value}" if part.field == "monitor" else str(part)
