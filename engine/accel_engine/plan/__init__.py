"""What to train: the plan, its fields, its steps, and the checks before training."""

from accel_engine.plan.groups import GROUPS
from accel_engine.plan.plan import DEFAULTS, SPECS, Plan

__all__ = ["DEFAULTS", "GROUPS", "SPECS", "Plan"]
