"""A case of ``advice.py``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Maker(Protocol):
    """Makes a run."""

    def make(self, directory: Path) -> Path:
        """Returns the run's directory; the other one is for files."""


@dataclass(frozen=True)
class Case:
    """A run, and what to say of it.

    Attributes:
        name: A short name.
        run: Makes it.
        expected: Ids of findings, one of which is right; empty for a healthy run.
        allowed: Further findings that are right, too.
    """

    name: str
    run: Maker
    expected: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
