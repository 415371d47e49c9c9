"""Changes of data by reading, in one form wherever data is described, trained on or summarized."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verb = Literal[
    "turned", "resized", "converted", "mixed", "resampled", "padded", "cut", "divided", "left out", "read as missing",
    "filled", "read as categories", "read as dates", "read as numbers", "standardized",
]  # fmt: skip
"""The change of examples or values."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that reading changes in data."""

    verb: Verb
    """The kind of the change."""
    what: str
    """The examples or values that change, in the plural, e.g. ``images`` or ``values of price``."""
    count: int | None = None
    """How many it is done to; ``None`` if all, or if they were not counted."""
    total: int | None = None
    """How many there are; ``None`` if unknown."""
    detail: str = ""
    """How, or why, e.g. ``as their EXIF orientation says``."""
    is_sampled: bool = False
    """Whether only some of the data was looked at, so that the count is of these."""

    def __str__(self) -> str:
        count = "" if self.count is None else f"{self.count:,} "
        total = "" if self.total is None or self.count is None else f"of {self.total:,} "
        looked_at = " looked at" if self.is_sampled and total else ""
        detail = f": {self.detail}" if self.detail else ""
        what = re.sub(r"s\b", "", self.what, count=1) if self.count == 1 and not total else self.what
        return f"{count}{total}{what}{looked_at} {self.verb}{detail}"


def remarks(notes: Iterable[str], changes: Iterable[Change]) -> tuple[str, ...]:
    """The notes on data, and then a sentence on each change by reading."""
    return (*notes, *map(str, changes))
