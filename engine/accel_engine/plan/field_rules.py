"""The rules of a field of a plan, a part of its entry: what it needs of other fields, and what contradicts it.

The error of a plan, the note of the form and the warning of a search follow from the same rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.purposes import Purpose


@dataclass(frozen=True, slots=True)
class Need:
    """A need of a field: without it, the field would have no effect.

    A plan with such a field is refused, and the form hides the field.
    """

    is_met: Callable[[Any], bool]
    """Whether a plan has it."""
    what: str
    """Its name in plain words: ``a schedule``."""
    remedy: Words
    """Fields to set, with which a plan has it."""

    @property
    def words(self) -> Words:
        """The message of a plan that does not have it."""
        return (f"needs {self.what}: use ", *self.remedy)


def one_of(field: str, *values: str, what: str) -> Need:
    """The need of one of some values of a field, of which the first one is suggested."""
    return Need(lambda plan: getattr(plan, field) in values, what, (FieldValue(field, values[0]),))


def is_set(field: str, value: str = "", *, what: str) -> Need:
    """The need of any value of a field but none, 0 and an empty text; ``value`` is suggested."""
    return Need(lambda plan: bool(getattr(plan, field)), what, (FieldValue(field, value),))


def either(first: Need, second: Need, *, what: str) -> Need:
    """The need of one of two things."""
    return Need(lambda plan: first.is_met(plan) or second.is_met(plan), what, (*first.remedy, " or ", *second.remedy))


def both(first: Need, second: Need, *, what: str) -> Need:
    """The need of two things."""
    return Need(lambda plan: first.is_met(plan) and second.is_met(plan), what, (*first.remedy, " and ", *second.remedy))


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction to a field that has a value."""

    holds: Callable[[Any], bool]
    """Whether a plan has it."""
    reason: Words
    """The message."""


def contradicts(field: str, value: str, *reason: str | FieldValue) -> Contradiction:
    """The contradiction to a value of another field."""
    return Contradiction(lambda plan: _normal(getattr(plan, field)) == value, reason)


def _normal(name: str) -> str:
    """A name as catalogues have it."""
    return name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Fields of which a plan sets one: their entries share this."""

    reason: str
    """Why, to begin the message."""


@dataclass(frozen=True, slots=True)
class FieldRules:
    """The rules of a field, besides its type and limits. Those of the plan alone come first."""

    check_form: Callable[[str, Any], object] | None = None
    """Raises a ``PlanError`` if a value of the right type is malformed; called with name and value."""
    needs: Need | None = None
    """What it needs of other fields to have an effect; ``None`` for nothing."""
    contradictions: tuple[Contradiction, ...] = ()
    """What contradicts it."""
    alternatives: Alternatives | None = None
    """Shared by fields of which a plan sets one; ``None`` for others."""
    only_for: Purpose | None = None
    """The data, model, strategy or devices that it is for; ``None`` for all."""
