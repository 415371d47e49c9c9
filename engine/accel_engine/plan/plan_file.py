"""Reads plan files, TOML or JSON, and names their errors with their lines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel_engine.errors import FieldValue, PlanError, UsageError, join_words, show_value
from accel_engine.plan.source_text import SourceError, json_lines, parse_json, parse_toml, read_source, toml_lines


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The fields of a plan file, not yet validated.

    Attributes:
        path: The file.
        values: Values by name.
        lines: The line of each name, from 1.
    """

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict)

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
        UsageError: It cannot be read or parsed.
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
