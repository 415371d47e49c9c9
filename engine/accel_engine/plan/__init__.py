"""What to train: the plan, its fields, its steps, and the checks before training."""

from accel_engine.plan.fields import GROUPS
from accel_engine.plan.plan import DEFAULTS, SPECS, Plan, parse_toml, read_values

__all__ = ["DEFAULTS", "GROUPS", "SPECS", "Plan", "parse_toml", "read_values"]
