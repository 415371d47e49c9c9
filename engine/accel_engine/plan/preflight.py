"""Checks a plan before TensorFlow is imported."""

from collections.abc import Sequence

from accel_engine import data, models
from accel_engine.data.pixel_scaling import choose_scaling
from accel_engine.devices.device_types import Device
from accel_engine.errors import DataError, PlanError
from accel_engine.models import ModelEntry
from accel_engine.plan import Plan
from accel_engine.plan.estimate import StepCounts, count_steps
from accel_engine.strategies.placement import resolve_placement


def check(plan: Plan, devices: Sequence[Device]) -> StepCounts | None:
    """Check that a plan's devices, strategy, data, model and batch size fit together.

    Custom models are checked by the engine, which can build them.

    Args:
        plan: The plan.
        devices: The machine's devices.

    Returns:
        The steps; ``None`` where the number of replicas is unknown before a TPU is connected.

    Raises:
        PlanError: A field does not fit the machine, the data or the model.
        DataError: The data file or folder cannot be read.
    """
    replicas = resolve_placement(plan, devices).replicas
    entry = data.survey(data.find(plan.data), plan.image_size)
    if entry.shape is None or entry.examples is None:
        raise DataError(f"the shape of the data {plan.data} is unknown")
    if entry.value_range is not None:
        choose_scaling(plan.scale, entry.value_range)
    model = models.find(plan.model)
    if isinstance(model, ModelEntry) and (mismatch := model.mismatch(entry.shape)):
        raise PlanError("model", plan.model, mismatch)
    return None if replicas is None else count_steps(plan, entry.examples, replicas)
