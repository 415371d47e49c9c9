"""How a plan's model is built."""

from accel_engine.models.build_options import BuildOptions
from accel_engine.plan import Plan
from accel_engine.plan.tuning_checks import IMAGENET


def build_options(plan: Plan, *, starts: bool = False) -> BuildOptions:
    """How a plan's model is built.

    Args:
        plan: The plan.
        starts: Whether its training starts, with the plan's initial weights; later they come from a checkpoint.
    """
    pretrained = plan.initial_weights == IMAGENET
    return BuildOptions(
        pretrained=pretrained,
        download=pretrained and starts,
        custom_objects=plan.custom_objects,
        unsafe=plan.unsafe_load == "on",
    )
