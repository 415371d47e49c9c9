"""Reads plan files, TOML or JSON, and collects all errors of a plan's fields, with their lines."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel_engine.errors import FieldValue, PlanError, UsageError, first_errors, join_words, show_value
from accel_engine.plan.fields import SPECS
from accel_engine.plan.plan import Plan, unknown_field
from accel_engine.plan.source_text import SourceError, json_lines, parse_json, parse_toml, read_source, toml_lines


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The fields of a plan file, not yet validated."""

    path: Path
    values: Mapping[str, Any]
    """Values by name."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of each name, from 1."""

    def describe(self, error: PlanError) -> str:
        """Word the error of a field, with the file and the line."""
        line = self.lines.get(error.field)
        at = f"{self.path}:{line}" if line else str(self.path)
        name = error.field if isinstance(error.value, dict) else f"{error.field} = {show_value(error.value)}"
        return f"{at}: {name}: {join_words(error.reason, _assignment)}"


def _assignment(part: FieldValue) -> str:
    """A field in a message, as a plan file sets it."""
    quote = "" if part.value.replace(".", "", 1).isdigit() else "'"
    return f"{part.field} = {quote}{part.value}{quote}" if part.value else part.field


def read_plan_file(path: Path) -> PlanFile:
    """Read a plan file or pipe, TOML or (by its suffix) JSON, without validating its fields.

    Raises:
        UsageError: The file cannot be read or parsed.
    """
    try:
        text = read_source(path, or_pipe=True)
        if path.suffix != ".json":
            return PlanFile(path, parse_toml(text, 'model = "cnn"'), toml_lines(text))
        values = parse_json(text)
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from error
    except SourceError as error:
        raise UsageError(error.at(path)) from error
    if not isinstance(values, dict):
        raise UsageError(f'{path}: the plan is not a JSON object, e.g. {{"model": "cnn"}}')
    return PlanFile(path, values, json_lines(text))


class InvalidPlanError(UsageError):
    """Several errors of a plan, or errors with the places where its fields are set.

    Args:
        errors: At least one error.
        describe: Words an error, with the file and the line of its field, for example.
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

    A field that contradicts an invalid one is left out without an error: it may be right once the other is.

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
