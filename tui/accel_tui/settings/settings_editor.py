"""Writing one setting into the user's file, and leaving all else in it as it is."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from accel_engine.errors import UsageError
from accel_tui.settings.user_settings import lines_of, read


def keep(file: Path, name: str, value: str) -> None:
    """Set a setting that is in no table; the file is made where there is none.

    Args:
        file: The settings file.
        name: The setting.
        value: A value that it may have.

    Raises:
        UsageError: The file is wrong already, or cannot be written; it stays as it is.
    """
    line = tomli_w.dumps({name: value}).strip()
    by_hand = f"write it yourself: {line}"
    file = file.resolve()
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text and (mistakes := read(file)[1]):
            raise UsageError(f"{mistakes[0]}; {by_hand}")
        changed = _with(text, name, line)
        if not _says(changed, tomllib.loads(text) | {name: value}):
            raise UsageError(f"{file}: {name} is set in a way that only you can change; {by_hand}")
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(changed, encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; {by_hand}") from error


def _says(text: str, values: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == values
    except tomllib.TOMLDecodeError:
        return False


def _with(text: str, name: str, line: str) -> str:
    """The text with a line in the place of what set the name, of what could have, or before all else."""
    lines = text.splitlines(keepends=True)
    at = lines_of(text).get(name)
    if at is None:
        header = next((number for number, one in enumerate(lines, 1) if one.lstrip().startswith("[")), len(lines) + 1)
        commented = re.compile(rf"#\s*{re.escape(name)}\s*=")
        at = next((number for number, one in enumerate(lines[: header - 1], 1) if commented.match(one)), None)
    if at is None:
        return f"{line}\n{text}"
    return "".join([*lines[: at - 1], f"{line}\n", *lines[at:]])
