"""Builds the model of a plan."""

import keras

from accel_engine.models.build import build
from accel_engine.models.data_description import DataDescription
from accel_engine.models.model_entry import BuildOptions
from accel_engine.plan import Plan
from accel_engine.plan.task_choices import IMAGENET


def build_plan_model(plan: Plan, data: DataDescription, *, starts: bool = False) -> keras.Model:
    """Build a plan's model; see :func:`accel_engine.models.build.build`.

    Args:
        plan: The plan.
        data: The data.
        starts: Whether its training starts, with the plan's initial weights; later they come from a checkpoint.

    Raises:
        PlanError: There is no such model, or no default for the data.
        ModelError: The model cannot be built, or does not fit the data.
    """
    pretrained = plan.initial_weights == IMAGENET
    options = BuildOptions(
        pretrained=pretrained,
        download=pretrained and starts,
        custom_objects=plan.custom_objects,
        unsafe=plan.unsafe_load == "on",
    )
    return build(plan.model, data, options)
