"""Reads plan files, TOML or JSON, and names their errors with their lines."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel_engine.errors import FieldValue, PlanError, UsageError, join_words, show_value
from accel_engine.plan.source_lines import explain_toml_error, json_lines, toml_lines


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
        return f"{at}: {error.field} = {show_value(error.value)}: {join_words(error.reason, _assignment)}"


def _assignment(part: FieldValue) -> str:
    """A field in a message, as a plan file sets it."""
    quote = "" if part.value.replace(".", "", 1).isdigit() else "'"
    return f"{part.field} = {quote}{part.value}{quote}" if part.value else part.field


def read_plan_file(path: Path) -> PlanFile:
    """Read a plan file, TOML or (by its suffix) JSON, without validating its fields.

    Raises:
        UsageError: It cannot be read or parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from error
    if path.suffix == ".json":
        return PlanFile(path, _json_values(path, text), json_lines(text))
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, message = explain_toml_error(error, text, 'model = "cnn"')
        raise UsageError(f"{path}:{line}: {message}") from error
    return PlanFile(path, values, toml_lines(text))


def _json_values(path: Path, text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: invalid JSON: {error.msg} at column {error.colno}") from error
    if not isinstance(values, dict):
        raise UsageError(f'{path}: the plan is not a JSON object, e.g. {{"model": "cnn"}}')
    return values
