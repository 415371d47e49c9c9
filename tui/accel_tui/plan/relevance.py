"""Which fields of a plan the form shows, by the rules of their entries; the others have their defaults in the plan."""

from collections.abc import Sequence

from accel_engine.devices.device_types import Device
from accel_engine.plan import DEFAULTS, RULES, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve


def is_relevant(name: str, resolved: ResolvedPlan, devices: Sequence[Device] | None) -> bool:
    """Whether a field is relevant.

    Args:
        name: The field.
        resolved: The plan, which may have values in irrelevant fields.
        devices: The devices of the machine; ``None`` before they are known, when fields of special
            hardware are relevant if they have a value.
    """
    need, purpose = RULES[name].needs, RULES[name].only_for
    if need is not None and not need.is_met(resolved.plan):
        return False
    has_value = getattr(resolved.plan, name) != DEFAULTS[name]
    return purpose is None or purpose.is_relevant(resolved.situation(devices), has_value=has_value)


def drop_irrelevant(plan: Plan, devices: Sequence[Device] | None) -> Plan:
    """Return the plan with irrelevant fields at their default."""
    resolved = resolve(plan)
    return plan.replace(**{name: DEFAULTS[name] for name in DEFAULTS if not is_relevant(name, resolved, devices)})


def needs(name: str) -> str:
    """What would make a field relevant, in a few words; empty for a field that always is."""
    need, purpose = RULES[name].needs, RULES[name].only_for
    return f"only for {purpose.what}" if purpose else f"needs {need.what}" if need else ""
