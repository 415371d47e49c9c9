"""Changes one setting in the settings file and preserves the rest of it."""

import re
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from accel_engine.errors import UsageError
from accel_engine.files import replacing
from accel_tui.settings.user_settings import lines_of, read


def save_setting(file: Path, name: str, value: str) -> None:
    """Save a top-level setting; create the file if it does not exist.

    Args:
        file: The settings file.
        name: The setting.
        value: A valid value.

    Raises:
        UsageError: The file has errors or cannot be written; it is not changed.
    """
    line = tomli_w.dumps({name: value}).strip()
    advice = f"add it yourself: {line}"
    file = file.resolve()
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text and (errors := read(file)[1]):
            raise UsageError(f"{errors[0]}; {advice}")
        changed = _replace_line(text, name, line)
        if not _has_values(changed, tomllib.loads(text) | {name: value}):
            raise UsageError(f"{file}: {name} cannot be changed automatically here; {advice}")
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as temporary:
            temporary.write_text(changed, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; {advice}") from error


def _has_values(text: str, values: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == values
    except tomllib.TOMLDecodeError:
        return False


def _replace_line(text: str, name: str, line: str) -> str:
    """Replace the line that sets a name, else its commented default, else insert the line at the start."""
    lines = text.splitlines(keepends=True)
    at = lines_of(text).get(name)
    if at is None:
        header = next((number for number, one in enumerate(lines, 1) if one.lstrip().startswith("[")), len(lines) + 1)
        commented = re.compile(rf"#\s*{re.escape(name)}\s*=")
        at = next((number for number, one in enumerate(lines[: header - 1], 1) if commented.match(one)), None)
    if at is None:
        return f"{line}\n{text}"
    return "".join([*lines[: at - 1], f"{line}\n", *lines[at:]])
