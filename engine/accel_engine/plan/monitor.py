"""The metric that a plan monitors: of training, or of validation."""

from collections.abc import Container, Sequence

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.task_choices import (
    ALWAYS_MEASURED,
    LOSSES_OF,
    METRICS,
    METRICS_OF,
    is_of_training,
    metric_name,
)

_OF_STEPS = ("gradient_norm", "learning_rate")
"""What training records besides metrics."""


def wrong_monitor(plan: PlanFields, task: str, chosen: Container[str]) -> Words:
    """Why a plan cannot monitor its metric, as far as it is known before the model is built; empty if it can.

    Args:
        plan: The plan.
        task: What a model of the catalogue learns; ``auto`` if it is unknown, and for the user's own model.
        chosen: The fields that may have other values; a run that continues cannot measure more metrics.
    """
    name = metric_name(plan.monitor).removeprefix("validation_")
    of_training = is_of_training(plan.monitor)
    # Without a task that is known, the loss and metrics may be any.
    if task not in LOSSES_OF or not name or (of_training and name in _OF_STEPS):
        return ()
    measured = measured_names(plan, task)
    words = unmeasured(name if of_training else f"validation_{name}", measured, measured)
    if not words or "metrics" not in chosen or name not in METRICS_OF.get(task, ()):
        return words
    add = FieldValue("metrics", ",".join((*_fitting(plan, task), name)))
    return f"{name} is not measured; measured are {', '.join(measured)}: add ", add


def unmeasured(monitor: str, trained: Sequence[str], validated: Sequence[str]) -> Words:
    """Why a metric cannot be monitored, and what can; empty if it can.

    Args:
        monitor: The metric, with ``validation_`` before one of validation.
        trained: What is measured in training.
        validated: Those that are measured at validation, without a prefix.
    """
    name = monitor.removeprefix("validation_")
    of_training = name == monitor
    known = trained if of_training else validated
    if name in known:
        return ()
    if of_training and name in validated:
        return f"{name} is measured at validation only: use ", FieldValue("monitor", f"validation_{name}")
    usual = "accuracy" if "accuracy" in known else "loss"
    use = FieldValue("monitor", usual if of_training else f"validation_{usual}")
    return f"{name} is not measured; measured are {', '.join(known)}: use ", use


def measured_names(plan: PlanFields, task: str) -> tuple[str, ...]:
    """The loss and metrics that a model of the catalogue measures, without a prefix."""
    return tuple(dict.fromkeys(("loss", *ALWAYS_MEASURED.get(task, ()), *_fitting(plan, task))))


def _fitting(plan: PlanFields, task: str) -> tuple[str, ...]:
    """The metrics of a plan that fit a task; all if it is unknown."""
    return tuple(name for name in plan.metrics if name in METRICS_OF.get(task, METRICS))
