"""Checks a plan's augmentation and fine-tuning against the model, the data and the strategy; without TensorFlow."""

import ast
from collections.abc import Iterator
from pathlib import Path

from accel_engine.data import DatasetEntry
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import FieldValue, PlanError
from accel_engine.models import AutoModel, ModelEntry, UserModel
from accel_engine.plan.augmentation import WITHOUT_XLA, augmentation_errors, parts_of, weights_of
from accel_engine.plan.fields import PlanFields
from accel_engine.strategies import StrategyEntry
from accel_engine.user_paths import user_path

IMAGENET = "imagenet"
"""The ``initial_weights`` that Keras downloads."""

WEIGHT_FILES = (".keras", ".weights.h5")
"""Endings of files with weights."""


def tuning_errors(
    plan: PlanFields, model: ModelEntry | AutoModel | UserModel, strategy: StrategyEntry, data: DatasetEntry
) -> Iterator[PlanError]:
    """Yield an error for each field that does not fit.

    Args:
        plan: The plan.
        model: Its model.
        strategy: Its strategy.
        data: What is known of its data.
    """
    yield from _augmentation_errors(plan, strategy, data)
    yield from _weights_errors(plan, model, data)
    yield from _saved_model_errors(plan, model)
    if plan.unfreeze_epoch is not None and plan.unfreeze_epoch > plan.epochs:
        reason = f"must be one of the {plan.epochs} epochs: lower it, or increase "
        yield PlanError("unfreeze_epoch", plan.unfreeze_epoch, reason, FieldValue("epochs"))


def _augmentation_errors(plan: PlanFields, strategy: StrategyEntry, data: DatasetEntry) -> Iterator[PlanError]:
    names, task = plan.augmentation, data.task if plan.task == "auto" else plan.task
    if task == "auto" and data.classes:
        task = "classification"
    if strategy.name == "central-storage" and names:
        reason = "central-storage cannot update the state of random layers on several devices: use "
        yield PlanError("augmentation", names, reason, FieldValue("strategy", "mirrored"))
    if strategy.kind == "tpu" and (refused := [part for part in parts_of(names, task) if part in WITHOUT_XLA]):
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


def _weights_errors(
    plan: PlanFields, model: ModelEntry | AutoModel | UserModel, data: DatasetEntry
) -> Iterator[PlanError]:
    weights = plan.initial_weights
    if weights != IMAGENET or isinstance(model, AutoModel):  # the data will tell which model it is
        return
    if not isinstance(model, ModelEntry) or not model.imagenet:
        reason = f"model {model.name} has none: use a model of keras.applications, such as "
        yield PlanError("initial_weights", weights, reason, FieldValue("model", "MobileNetV2"))
        return
    if plan.scale == "0-1":
        yield PlanError("scale", plan.scale, "the ImageNet model scales pixels itself: use auto")
    for reason in _not_photographs(data):
        yield PlanError("initial_weights", weights, reason)


def _not_photographs(data: DatasetEntry) -> Iterator[str]:
    """Why some data cannot be the input of a model with ImageNet weights."""
    values = data.value_range
    if values is not None and not (values.pixels and values.largest == 255):
        yield f"the model takes pixels from 0 to 255 (uint8); the data has {values.dtype}"
    elif data.shape is not None and len(data.shape) == 3 and data.shape[2] not in (1, 3):
        yield f"the model takes images with 1 or 3 channels; the data has {data.shape[2]}"


def _saved_model_errors(plan: PlanFields, model: ModelEntry | AutoModel | UserModel) -> Iterator[PlanError]:
    saved = isinstance(model, UserModel) and model.kind == "saved"
    if plan.unsafe_load == "on" and not saved:
        yield PlanError("unsafe_load", "on", f"only for a model in a FILE.keras; the model is {plan.model}")
    if not plan.custom_objects:
        return
    if not saved:
        reason = f"only for a model in a FILE.keras; the model is {plan.model}"
        yield PlanError("custom_objects", plan.custom_objects, reason)
    elif problem := _python_problem(user_path(plan.custom_objects)):
        yield PlanError("custom_objects", plan.custom_objects, problem)


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
