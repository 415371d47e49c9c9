"""The learning rate of a plan, and that which its optimizer has."""

import math
from collections.abc import Mapping
from typing import Any

from accel_engine.plan.plan import Plan


def scaling_factor(plan: Plan, replicas: int) -> float:
    """The factor by which a plan scales its learning rate for a number of replicas."""
    factors: dict[str, float] = {"none": 1.0, "linear": replicas, "square-root": math.sqrt(replicas)}
    return factors[plan.rate_scaling]


def with_planned_rate(changes: Mapping[str, Any], plan: Plan, replicas: int) -> dict[str, Any]:
    """Changes of a plan whose optimizer has the learning rate of the changes.

    Args:
        changes: Fields with their new values; a learning rate is the optimizer's.
        plan: The plan without them, which multiplies its learning rate.
        replicas: Number of replicas.
    """
    rate = changes.get("learning_rate")
    if rate is None:
        return dict(changes)
    changed = {"rate_scaling", "learning_rate_factor"} & changes.keys()
    factored = plan.replace(**{name: changes[name] for name in changed})
    factor = scaling_factor(factored, replicas) * factored.learning_rate_factor
    return {**changes, "learning_rate": rate if factor == 1 else rate / factor}
