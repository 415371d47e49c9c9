"""Changes one setting in the settings file and preserves the rest of it."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from accel_engine.errors import UsageError
from accel_engine.files import private_directory, replacing
from accel_tui.settings.user_settings import read


def save_setting(file: Path, name: str, value: str) -> None:
    """Save a top-level setting; create the file if it does not exist.

    Args:
        file: The settings file.
        name: The setting.
        value: A valid value.

    Raises:
        UsageError: The file has errors or cannot be written; it is not changed.
    """
    advice = f"add it yourself: {tomlkit.dumps({name: value}).strip()}"
    file = file.resolve()
    try:
        if file.exists() and (errors := read(file)[1]):
            raise UsageError(f"{errors[0]}; {advice}")
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        expected = tomllib.loads(text) | {name: value}
        changed = next((each for each in _edits(text, name, value) if _has_values(each, expected)), None)
        if changed is None:
            raise UsageError(f"{file}: {name} cannot be changed automatically here; {advice}")
        private_directory(file.parent)
        with replacing(file) as temporary:
            temporary.touch(file.stat().st_mode & 0o777 if file.exists() else 0o600)
            temporary.write_text(changed, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; {advice}") from error


def _edits(text: str, name: str, value: str) -> Iterator[str]:
    """The text with the name set: in place of its commented default, or else where tomlkit puts it."""
    if name not in tomllib.loads(text):
        line = tomlkit.dumps({name: value}).strip()
        yield re.sub(rf"(?m)^#\s*{re.escape(name)}\s*=.*", lambda _: line, text, count=1)
    with suppress(TOMLKitError):
        document = tomlkit.parse(text)
        document[name] = value
        yield document.as_string()


def _has_values(text: str, values: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == values
    except tomllib.TOMLDecodeError:
        return False
