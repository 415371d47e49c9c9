"""All errors of a plan's fields at once: of a plan file, of the user settings, of the form."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from accel_engine.errors import FieldValue, PlanError, UsageError, first_errors
from accel_engine.plan.fields import SPECS
from accel_engine.plan.plan import Plan, unknown_field


class InvalidPlanError(UsageError):
    """Several errors of a plan, or errors with the places where its fields are set.

    Args:
        errors: At least one error.
        describe: Words an error, with the file and the line of its field, for example.

    Attributes:
        errors: The errors.
    """

    def __init__(self, errors: Sequence[PlanError], describe: Callable[[PlanError], str] = str) -> None:
        self.errors = tuple(errors)
        lines = [describe(error) for error in errors]
        title = [f"the plan has {len(lines)} errors"] if lines[1:] else []
        super().__init__("\n".join([*title, *first_errors(lines)]))


def refers_to(error: PlanError, fields: Container[str]) -> bool:
    """Whether the message of an error is about one of some other fields, too."""
    return any(isinstance(part, FieldValue) and part.field in fields for part in error.reason)


def valid_part(values: Mapping[str, Any], *, invalid: Container[str] = ()) -> tuple[Plan, dict[str, PlanError]]:
    """Make a plan of the valid fields; the others have their defaults.

    A field that contradicts an invalid one is left out without an error of its own: it may be right once the other is.

    Args:
        values: Values by name.
        invalid: Further fields, which are known to be invalid.

    Returns:
        The plan, and the error of each invalid or unknown field.
    """
    errors: dict[str, PlanError] = {name: unknown_field(name, values[name]) for name in values if name not in SPECS}
    valid: dict[str, Any] = {}
    for name, value in values.items():
        if name in errors:
            continue
        try:
            valid[name] = SPECS[name].check(name, value)
        except PlanError as error:
            errors[name] = error
    while True:
        try:
            return Plan(**valid), errors
        except PlanError as error:
            if not (refers_to(error, errors) or refers_to(error, invalid)):
                errors[error.field] = error
            valid.pop(error.field, None)
