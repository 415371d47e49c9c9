"""Changes of some fields of a plan: the changed plan, and the options that make it."""

from collections.abc import Mapping
from typing import Any

from accel_engine.plan.plan import Plan, option_words
from accel_engine.plan.plan_checks import without_ignored
from accel_engine.text import shell_command


def changed_plan(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """A plan with changes, without other fields that have no effect any more.

    Args:
        plan: The plan.
        changes: Fields with their new values.

    Raises:
        PlanError: A value does not fit its field, or a changed field has no effect.
    """
    return Plan.from_mapping(without_ignored({**plan.to_mapping(), **changes}, wanted=changes))


def options_text(changes: Mapping[str, Any]) -> str:
    """Changes of a plan as options of a command: ``--xla on --batch-size 256``."""
    return shell_command(word for name, value in changes.items() for word in option_words(name, value))
