"""The first stage of the checks of a plan: its fields alone, without files, model, data or machine.

Most rules are in the entries of the fields; this module applies them, and adds the rules on several fields.
"""

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from typing import Any

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan.augmentation import mixing_reasons, weights_of
from accel_engine.plan.field_rules import Need
from accel_engine.plan.fields import CLIPPED_ONCE, DEFAULTS, RULES, SPECS, PlanFields

NEEDS: Mapping[str, Need] = {name: rules.needs for name, rules in RULES.items() if rules.needs is not None}
"""What a field needs other fields to be, so that it has an effect."""

CLIPPING = tuple(name for name, rules in RULES.items() if rules.alternatives is CLIPPED_ONCE)
"""The fields that clip gradients, of which Keras takes one only."""


class NoEffectError(PlanError):
    """A field that has no effect without another one."""


def errors_of_plan(plan: PlanFields) -> Iterator[PlanError]:
    """Yield an error for each field that is malformed, contradicts another field, or has no effect without one."""
    for name, rules in RULES.items():
        try:
            if rules.check_form is not None:
                rules.check_form(name, getattr(plan, name))
        except PlanError as error:
            yield error
    for name in RULES:
        yield from _contradictions(plan, name)
    for reason in mixing_reasons(plan.augmentation, plan.task, weights_of(plan.class_weight, of_data=False)):
        yield PlanError("augmentation", plan.augmentation, *reason)
    for name in ignored(plan):
        yield NoEffectError(name, getattr(plan, name), *NEEDS[name].words)


def _contradictions(plan: PlanFields, name: str) -> Iterator[PlanError]:
    rules, value = RULES[name], getattr(plan, name)
    if value == DEFAULTS[name]:
        return
    for contradiction in rules.contradictions:
        if contradiction.holds(plan):
            yield PlanError(name, value, *contradiction.reason)
    if rules.alternatives is None:
        return
    first = next(each for each in alternatives_to(name) if getattr(plan, each) != DEFAULTS[each])
    if first != name:
        yield PlanError(name, value, f"{rules.alternatives.reason}: leave out ", FieldValue(first))


def alternatives_to(name: str) -> tuple[str, ...]:
    """The fields, this one included, of which a plan sets at most one; empty if the field excludes no other."""
    shared = RULES[name].alternatives if name in RULES else None
    return tuple(each for each, rules in RULES.items() if shared is not None and rules.alternatives is shared)


def ignored(plan: PlanFields) -> Iterator[str]:
    """Yield the fields that have a value, but no effect."""
    for name, need in NEEDS.items():
        if getattr(plan, name) != DEFAULTS[name] and not need.is_met(plan):
            yield name


def without_ignored(values: Mapping[str, Any], wanted: Container[str] = ()) -> dict[str, Any]:
    """Leave out the fields of a plan that have no effect.

    Args:
        values: Values by name; values of other names, and invalid ones, are kept.
        wanted: Fields to keep anyway, so that the plan is refused.
    """
    kept = dict(values)
    while dropped := [name for name in ignored(valid_fields(kept)) if name not in wanted]:
        for name in dropped:
            del kept[name]
    return kept


def valid_fields(values: Mapping[str, Any]) -> PlanFields:
    """The fields with valid values, each by itself; the others have their defaults."""
    valid: dict[str, Any] = {}
    for name, value in values.items():
        if name in SPECS:
            with suppress(PlanError):
                valid[name] = SPECS[name].check(name, value)
    return PlanFields(**valid)
