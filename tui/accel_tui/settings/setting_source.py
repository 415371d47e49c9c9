"""Where settings come from: the file, and the line of each setting in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


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
