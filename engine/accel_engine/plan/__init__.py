"""A plan: its fields, its steps, and the checks before training."""

from accel_engine.plan.fields import DEFAULTS, GROUPS, PATH_FIELDS, RULES, RUN_TEXTS, SPECS, USES, WORDS, affecting
from accel_engine.plan.plan import Plan

__all__ = ["DEFAULTS", "GROUPS", "PATH_FIELDS", "RULES", "RUN_TEXTS", "SPECS", "USES", "WORDS", "Plan", "affecting"]
