"""Which plan defaults of the user settings apply to a run: those that fit what is chosen for it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, PlanError
from accel_engine.plan import USES, Plan
from accel_engine.plan.plan_checks import alternatives_to, without_ignored
from accel_engine.plan.plan_errors import valid_part
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_tui.plan.relevance import is_relevant


def with_fitting_defaults(
    defaults: Mapping[str, Any], chosen: Mapping[str, Any], devices: Sequence[Device]
) -> tuple[dict[str, Any], list[PlanError]]:
    """Complete what is chosen for a run by the defaults that fit it.

    A default that has no effect is left out, as in the form, and so is one that contradicts what is chosen, or is for
    other tasks. A model, data or devices that do not fit are kept, so that the plan is refused.

    Args:
        defaults: Valid values by field.
        chosen: Values by name, which may be invalid; they are all kept.
        devices: The devices of the machine.

    Returns:
        The values, and why defaults with an effect are left out.
    """
    other_ways = {other for name in chosen for other in alternatives_to(name)}
    left = {name: value for name, value in defaults.items() if name not in chosen and name not in other_ways}
    reasons: list[PlanError] = []
    while True:
        values = without_ignored({**left, **chosen}, wanted=chosen)
        plan, invalid = valid_part(values)
        if not left or not invalid.keys().isdisjoint(("model", "data", "task", "strategy")):
            return values, reasons  # what fits is unknown, or the same for all
        resolved = _surveyed(plan, devices)
        misfits = [error for error in invalid.values() if error.field in left]
        misfits += [error for error in resolved.plan_errors if error.field in left and USES[error.field].fits_tasks]
        dropped = {name for name in left if name in values and not is_relevant(name, resolved, devices)}
        reasons += [error for error in misfits if error.field not in dropped]
        dropped |= {error.field for error in misfits}
        if not dropped:
            return values, reasons
        left = {name: value for name, value in left.items() if name not in dropped}


def _surveyed(plan: Plan, devices: Sequence[Device]) -> ResolvedPlan:
    """The plan with what is known of its data; if that cannot be read, as without it."""
    resolved = resolve(plan, devices)
    with suppress(AccelError):
        return resolved.with_survey()
    return resolved
