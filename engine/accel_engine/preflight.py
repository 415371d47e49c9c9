"""Everything about a plan that can be found wrong before TensorFlow is imported for nothing."""

from collections.abc import Sequence

from accel_engine import data, models
from accel_engine.data.pixel_scaling import choose_scaling
from accel_engine.devices.reading import Device
from accel_engine.errors import DataError, PlanError
from accel_engine.estimate import StepCounts, count_steps
from accel_engine.models import ModelEntry
from accel_engine.plan import Plan
from accel_engine.strategies import resolve_placement


def check(plan: Plan, devices: Sequence[Device]) -> StepCounts | None:
    """Check that devices, strategy, data, model and batch of a plan fit together.

    The user's own models are left for the engine to check, since only it can build them.

    Args:
        plan: The plan.
        devices: The devices of the machine.

    Returns:
        How the data becomes steps; ``None`` where the number of replicas is not known before a TPU is connected.

    Raises:
        PlanError: The plan asks for what the machine, the data or the model cannot give.
        DataError: The user's file or folder cannot be read.
    """
    replicas = resolve_placement(plan, devices).replicas
    entry = data.survey(data.find(plan.data), plan.image_size)
    if entry.shape is None or entry.examples is None:
        raise DataError(f"nothing is known of the data {plan.data}")
    if entry.value_range is not None:
        choose_scaling(plan.scale, entry.value_range)
    model = models.find(plan.model)
    if isinstance(model, ModelEntry) and (mismatch := model.mismatch(entry.shape)):
        raise PlanError("model", plan.model, mismatch)
    return None if replicas is None else count_steps(plan, entry.examples, replicas)
