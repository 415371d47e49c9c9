"""Checks that a plan's loss, metrics and schedule fit its task and its number of steps, before training."""

from collections.abc import Container

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.estimate import StepCounts
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.monitor import wrong_monitor
from accel_engine.plan.task_choices import LOSSES_OF, METRICS_OF


def task_errors(
    plan: PlanFields, task: str, step_counts: StepCounts | None, chosen: Container[str]
) -> dict[str, Words]:
    """Why fields of a plan do not fit the task of its data or its number of steps, by field.

    Args:
        plan: The plan.
        task: What a model of the catalogue learns; ``auto`` if it is unknown, and for the user's own model.
        step_counts: The plan's steps; ``None`` if they are unknown.
        chosen: The fields to check: all of a new run. A run that continues was trained with its other fields; of those,
            only what would end it is checked.
    """
    found: dict[str, Words] = {}
    total = step_counts.total_steps if step_counts else 0
    if total and plan.warmup >= total:
        steps = f"must be below the {total} steps of the run, which follow from "
        found["warmup"] = (
            steps,
            FieldValue("epochs"),
            ", ",
            FieldValue("steps_per_epoch"),
            " and ",
            FieldValue("batch_size"),
        )
    if "loss" in chosen and (wrong := wrong_loss(plan, task)):
        found["loss"] = wrong
    if "label_smoothing" in chosen and task in ("regression", "reconstruction") and plan.label_smoothing:
        found["label_smoothing"] = (f"is of classes; the data is for {task}",)
    follows = plan.patience is not None or plan.restore_best == "on"
    if ("monitor" in chosen or follows) and (wrong := wrong_monitor(plan, task, chosen)):
        found["monitor"] = wrong
    if "metrics" in chosen and (wrong := wrong_metrics(plan, plan.task if task == "auto" else task)):
        found["metrics"] = wrong
    return found


def wrong_loss(plan: PlanFields, task: str) -> Words:
    """Why a model of the catalogue cannot have the plan's loss; empty if it can, or if the task is not known."""
    losses = LOSSES_OF.get(task)
    if losses is None or plan.loss in ("auto", *losses):
        return ()
    return (f"not a loss of {task}; those are {', '.join(losses)}",)


def wrong_metrics(plan: PlanFields, task: str) -> Words:
    """Why a plan cannot name its metrics for a task; empty if it can, or if the task is not known."""
    known = METRICS_OF.get(task)
    wrong = [name for name in plan.metrics if known is not None and name not in known]
    if not wrong:
        return ()
    right = f"use {', '.join(known)}" if known else "compile the model with its metrics"
    return (f"{' and '.join(wrong)} cannot be measured for the task {task}: {right}",)
