"""Completes paths that are typed."""

import os
from collections.abc import Sequence

from accel_engine.text import printable_line
from accel_engine.user_paths import user_path


def complete_path(text: str, suffixes: Sequence[str] = ()) -> str | None:
    """The text with the rest of the first name that begins with what was typed; ``None`` if there is none.

    Args:
        text: The beginning of a path; a folder is completed with a separator.
        suffixes: Suffixes of the files that count; folders count always.
    """
    folder, typed = os.path.split(text)
    if not text or not typed:
        return None
    try:
        with os.scandir(user_path(folder or ".")) as entries:
            found = sorted(_name(entry) for entry in entries if _counts(entry, typed, suffixes))
    except (OSError, ValueError):
        return None
    completed = os.path.join(folder, found[0]) if found else text
    return completed if completed != text else None


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name + (os.sep if entry.is_dir() else "")


def _counts(entry: "os.DirEntry[str]", typed: str, suffixes: Sequence[str]) -> bool:
    if not entry.name.startswith(typed) or entry.name != printable_line(entry.name):
        return False
    return entry.is_dir() or entry.name.lower().endswith(tuple(suffixes) or "\0")
