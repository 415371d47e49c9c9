"""Values of plan fields that are not their defaults, from the entries."""

from collections.abc import Mapping
from typing import Any

from accel_engine.errors import FieldValue
from accel_engine.plan import DEFAULTS, SPECS
from accel_engine.plan.plan_checks import NEEDS, ignored, valid_fields

_CATALOGUED = {"model": "linear", "data": "synthetic"}
"""Names of catalogues, of which an entry has no example."""


def away(name: str) -> Any:
    """A value of a field that is not its default."""
    spec, default = SPECS[name], DEFAULTS[name]
    if name in _CATALOGUED:
        return _CATALOGUED[name]
    if spec.choices:
        first = next(choice for choice in spec.choices if choice not in (default, "auto"))
        return (first,) if spec.type is tuple else first
    if spec.example:
        return spec.parse(name, spec.example)
    if spec.type is int:
        return max(int(spec.minimum or 0), int(default or 0)) + 1
    if spec.type is float:
        return (default or 0.02) / 2 if not spec.minimum else spec.minimum
    raise AssertionError(f"the entry of {name} has no example: add one")


def with_needs(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of fields, with what they need of others to have an effect."""
    found = dict(values)
    while lacking := next(ignored(valid_fields(found)), ""):
        for each in NEEDS[lacking].remedy:
            if isinstance(each, FieldValue):
                found[each.field] = SPECS[each.field].parse(each.field, each.value) if each.value else away(each.field)
    return found
