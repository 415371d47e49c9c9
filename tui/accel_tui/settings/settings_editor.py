"""Changes one setting in the settings file and preserves the rest of it."""

from pathlib import Path

import tomlkit

from accel_engine.errors import UsageError
from accel_engine.files import replacing
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
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text and (errors := read(file)[1]):
            raise UsageError(f"{errors[0]}; {advice}")
        document = tomlkit.parse(text)
        document[name] = value
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as temporary:
            temporary.write_text(document.as_string(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; {advice}") from error
