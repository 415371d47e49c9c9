"""The metric that a plan monitors: of training, or of validation."""

from collections.abc import Container

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.task_choices import LOSSES_OF, MEASURED_AT_VALIDATION, METRICS, METRICS_OF

_OF_STEPS = ("gradient_norm", "learning_rate")
"""What training records besides metrics."""


def monitors_training(plan: PlanFields) -> bool:
    """Whether the monitor is a metric of training."""
    return bool(plan.monitor) and not plan.monitor.startswith(("validation_", "val_"))


def wrong_monitor(plan: PlanFields, task: str, chosen: Container[str]) -> Words:
    """Why a plan cannot monitor its metric, as far as it is known before the model is built; empty if it can.

    Args:
        plan: The plan.
        task: What a model of the catalogue learns; ``auto`` if it is unknown, and for the user's own model.
        chosen: The fields that may have other values; a run that continues cannot measure more metrics.
    """
    name = plan.monitor.removeprefix("val_").removeprefix("validation_")
    of_training = monitors_training(plan)
    if of_training and name in plan.metrics and name in MEASURED_AT_VALIDATION:
        return f"{name} is measured at validation only: use ", FieldValue("monitor", f"validation_{name}")
    if not name or task not in LOSSES_OF or (of_training and name in _OF_STEPS):
        return ()
    known = measured_names(plan, task)
    if name in known:
        return ()
    unknown = f"{name} is not measured; measured are {', '.join(known)}: "
    if "metrics" not in chosen or name not in METRICS_OF.get(task, ()):
        return unknown + "use ", FieldValue("monitor", known[-1] if of_training else f"validation_{known[-1]}")
    add = FieldValue("metrics", ",".join((*_fitting(plan, task), name)))
    if of_training and name in MEASURED_AT_VALIDATION:
        return unknown + "add ", add, " and ", FieldValue("monitor", f"validation_{name}")
    return unknown + "add ", add


def measured_names(plan: PlanFields, task: str) -> tuple[str, ...]:
    """The loss and metrics that a model of the catalogue measures at validation, without a prefix."""
    accuracy = ("accuracy",) if "accuracy" in METRICS_OF.get(task, METRICS) else ()
    return tuple(dict.fromkeys(("loss", *accuracy, *_fitting(plan, task))))


def _fitting(plan: PlanFields, task: str) -> tuple[str, ...]:
    """The metrics of a plan that fit a task; all if it is unknown."""
    return tuple(name for name in plan.metrics if name in METRICS_OF.get(task, METRICS))
