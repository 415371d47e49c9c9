"""The second stage of the checks of a plan: with its model, its strategy and what is known of its data and its steps.

:class:`accel_engine.plan.resolved_plan.ResolvedPlan` asks this once it knows more. Without TensorFlow.
"""

import ast
from collections.abc import Container, Iterator
from pathlib import Path

from accel_engine.data import DatasetEntry
from accel_engine.data.structure import ArraySpec, Structure, has_texts
from accel_engine.errors import FieldValue, PlanError, Words
from accel_engine.models import AutoModel, ModelEntry
from accel_engine.models.data_description import describe_entry
from accel_engine.plan.augmentation import WITHOUT_XLA, augmentation_errors, augmentations_of, weights_of
from accel_engine.plan.fields import DEFAULTS, RULES, PlanFields
from accel_engine.plan.interval import drop_steps, warmup_steps
from accel_engine.plan.monitor import NOTHING_TO_VALIDATE, is_better_lower, unknown_direction, wrong_monitor
from accel_engine.plan.purposes import Situation
from accel_engine.plan.step_counts import StepCounts
from accel_engine.plan.task_choices import (
    IMAGENET,
    LOSSES_OF,
    METRICS_OF,
    TOP_K,
    TOP_K_ACCURACY,
    WEIGHT_FILES,
    metric_name,
)
from accel_engine.user_paths import no_file, user_path

NO_LOSS_SCALING = "central-storage does not support loss scaling: use mixed_bfloat16, or the mirrored strategy"


def errors_of_fit(situation: Situation, step_counts: StepCounts | None, chosen: Container[str]) -> Iterator[PlanError]:
    """Yield the errors of fields that do not fit; of a field with several, the first one counts.

    Args:
        situation: The plan with its model, its strategy and what is known of its data and its devices.
        step_counts: The plan's steps; ``None`` if they are unknown.
        chosen: The fields whose values are chosen now: all of a new run. A run that continues was trained with its
            other fields; of those, only what would end it is checked.
    """
    yield from (error for error in effect_errors(situation) if error.field in chosen)
    yield from _augmentation_errors(situation)
    yield from _file_errors(situation, chosen)
    yield from _precision_errors(situation)
    yield from _step_errors(situation.plan, step_counts.total_steps if step_counts else 0)
    yield from _task_errors(situation, chosen)


def effect_errors(situation: Situation) -> Iterator[PlanError]:
    """Yield an error for each field that has a value, but no effect on the plan's data, model, strategy or devices."""
    for name, rules in RULES.items():
        value, purpose = getattr(situation.plan, name), rules.only_for
        if purpose is None or not purpose.is_refused or value == DEFAULTS[name]:
            continue
        if not purpose.has_effect(situation):
            yield PlanError(name, value, *purpose.words(situation))


def _augmentation_errors(situation: Situation) -> Iterator[PlanError]:
    plan, data = situation.plan, situation.data
    names, task = plan.augmentation, situation.task
    if task == "auto" and data.classes:
        task = "classification"
    if situation.strategy.kind == "tpu" and (
        refused := [part for part in augmentations_of(names, task) if part in WITHOUT_XLA]
    ):
        reason = f"a TPU compiles the step with XLA, which has no {' and no '.join(refused)}: leave them out"
        yield PlanError("augmentation", names, reason)
    several = data.spec is not None and not isinstance(data.spec.inputs, ArraySpec)
    if data.shape is None and not several:
        return  # only reading the data can tell
    yield from augmentation_errors(
        names,
        task,
        kind=data.kind,
        shape=data.shape,
        known_range=data.value_range is None or data.value_range.largest is not None,
        weighted=weights_of(plan.class_weight, of_data=data.spec is not None and data.spec.weights is not None),
    )


def _file_errors(situation: Situation, chosen: Container[str]) -> Iterator[PlanError]:
    """Why files with weights or code cannot be used."""
    plan, model, weights = situation.plan, situation.model, situation.plan.initial_weights
    if weights.endswith(WEIGHT_FILES) and "initial_weights" in chosen and (why := no_file(user_path(weights))):
        yield PlanError("initial_weights", weights, why)
    if plan.custom_objects and (problem := _python_problem(user_path(plan.custom_objects))):
        yield PlanError("custom_objects", plan.custom_objects, problem)
    if weights != IMAGENET or isinstance(model, AutoModel):  # the data will tell which model it is
        return
    if not isinstance(model, ModelEntry) or not model.imagenet:
        reason = f"model {model.name} has none: use a model of keras.applications, such as "
        yield PlanError("initial_weights", weights, reason, FieldValue("model", "MobileNetV2"))
        return
    if plan.scale == "0-1":
        yield PlanError("scale", plan.scale, "the ImageNet model scales pixels itself: use auto")
    for reason in _not_photographs(situation.data):
        yield PlanError("initial_weights", weights, reason)


def _not_photographs(data: DatasetEntry) -> Iterator[str]:
    """Why some data cannot be the input of a model with ImageNet weights."""
    values = data.value_range
    if values is not None and not (values.pixels and values.largest == 255):
        yield f"the model takes pixels from 0 to 255 (uint8); the data has {values.dtype}"
    elif data.shape is not None and len(data.shape) == 3 and data.shape[2] not in (1, 3):
        yield f"the model takes images with 1 or 3 channels; the data has {data.shape[2]}"


def _python_problem(path: Path) -> str:
    """Why a file is not Python with classes or functions; empty if it is."""
    if path.suffix != ".py":
        return "must be a Python file, e.g. layers.py"
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        return "no such file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (SyntaxError, ValueError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"is not valid Python: {error.args[0]}{line}"
    defines = (ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)
    if not any(isinstance(node, defines) for node in ast.walk(tree)):
        return "defines no class and no function"
    return ""


def _precision_errors(situation: Situation) -> Iterator[PlanError]:
    """Errors of precisions that XLA or a strategy cannot compute."""
    plan = situation.plan
    if situation.data.spec is not None and (why := why_not_compilable(plan, situation.data.spec)):
        yield PlanError("xla", plan.xla, why)
    if plan.precision == "mixed_float16" and situation.strategy.name == "central-storage":
        yield PlanError("precision", plan.precision, NO_LOSS_SCALING)


def why_not_compilable(plan: PlanFields, spec: Structure) -> str:
    """Why XLA, if the plan has it, cannot compile a step; empty if it can.

    Args:
        plan: The plan.
        spec: The specs of an example.
    """
    return "must be auto or off: XLA cannot compile operations on texts" if plan.xla == "on" and has_texts(spec) else ""


def _step_errors(plan: PlanFields, total: int) -> Iterator[PlanError]:
    """Errors of fields that do not fit the epochs, or the steps if their number is known."""
    if plan.unfreeze_epoch is not None and plan.unfreeze_epoch > plan.epochs:
        reason = f"must be one of the {plan.epochs} epochs: lower it, or increase "
        yield PlanError("unfreeze_epoch", plan.unfreeze_epoch, reason, FieldValue("epochs"))
    if not total or plan.schedule == "auto":
        return
    warmup = warmup_steps(plan, total)
    if wrong := wrong_warmup(warmup, total):
        yield PlanError("warmup", plan.warmup, *wrong)
    elif plan.schedule == "steps" and (reason := wrong_drops(plan, warmup, total)):
        yield PlanError("rate_drops", plan.rate_drops, reason)


def wrong_warmup(warmup: int, total: int) -> Words:
    """Why a run of ``total`` steps cannot have a warm-up of ``warmup`` steps; empty if it can."""
    if warmup < total:
        return ()
    follow = FieldValue("epochs"), ", ", FieldValue("steps_per_epoch"), " and ", FieldValue("batch_size")
    return (f"must be below the {total} steps of the run, which follow from ", *follow)


def wrong_drops(plan: PlanFields, warmup: int, total: int) -> str:
    """Why the learning rate cannot drop as planned in ``total`` steps, ``warmup`` of them warm-up; empty if it can."""
    return f"must be after the warm-up of {warmup} steps" if drop_steps(plan, total)[0] < warmup else ""


def _task_errors(situation: Situation, chosen: Container[str]) -> Iterator[PlanError]:
    """Errors of fields that do not fit the task of the data, or would not be measured."""
    plan, data = situation.plan, situation.data
    described = describe_entry(data, plan.task)
    # Only models of the catalogue learn what the data tells; a user's model may have any loss.
    task = described.learned_task if described and isinstance(situation.model, ModelEntry) else "auto"
    if "loss" in chosen and (wrong := wrong_loss(plan, task)):
        yield PlanError("loss", plan.loss, *wrong)
    yield from _monitor_errors(situation, task, chosen)
    if "metrics" in chosen and (wrong := wrong_metrics(plan, plan.task if task == "auto" else task)):
        yield PlanError("metrics", plan.metrics, *wrong)
    has_top_k = "metrics" in chosen and TOP_K_ACCURACY in plan.metrics
    if has_top_k and task == "classification" and data.classes and (reason := wrong_top_k(data.classes)):
        yield PlanError("metrics", plan.metrics, reason)


def _monitor_errors(situation: Situation, task: str, chosen: Container[str]) -> Iterator[PlanError]:
    """Why a plan cannot monitor its metric, or not stop by it or keep the best weights."""
    plan = situation.plan
    decides, monitor = plan.patience is not None or plan.restore_best == "on", metric_name(plan.monitor)
    if ("monitor" in chosen or decides) and (wrong := wrong_monitor(plan, task, chosen)):
        yield PlanError("monitor", plan.monitor, *wrong)
    if decides and monitor.startswith("validation_") and situation.data.validation_examples == 0:
        yield PlanError("monitor", plan.monitor, *NOTHING_TO_VALIDATE)
    if decides and monitor and is_better_lower(monitor, plan.monitor_mode) is None:
        yield PlanError("monitor_mode", plan.monitor_mode, *unknown_direction(monitor))


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


def wrong_top_k(classes: int) -> str:
    """Why the accuracy of the most probable classes cannot be measured with this number of classes; empty if it can."""
    return (
        ""
        if classes > TOP_K
        else f"{TOP_K_ACCURACY} counts the {TOP_K} most probable of the classes; there are {classes}"
    )
