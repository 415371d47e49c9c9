"""Where settings come from: the file, and the line of each setting in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<name>(?:\"[^\"]*\"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")


@dataclass(frozen=True, slots=True)
class SettingSource:
    """The origin of settings.

    Attributes:
        path: The file.
        lines: The line number of each setting in it, from 1; names are dotted, e.g. ``rates.frames``.
    """

    path: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    def line(self, name: str) -> int | None:
        """The line of a setting or of its table; ``None`` if unknown."""
        while name and name not in self.lines:
            name = name.rpartition(".")[0]
        return self.lines.get(name)

    def at(self, name: str, error: str) -> str:
        """Prefix an error with the file and the line of a setting."""
        line = self.line(name)
        return f"{self.path}:{line}: {error}" if line else f"{self.path}: {error}"


def lines_of(text: str) -> dict[str, int]:
    """Find the number of the line, from 1, that first sets each name of a TOML file."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _dotted(header["name"])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            name = _dotted(key["name"])
            lines.setdefault(f"{table}.{name}" if table else name, number)
    return lines


def _dotted(name: str) -> str:
    return ".".join("".join(part.groups("")) for part in _PART.finditer(name))
