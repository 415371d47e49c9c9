"""The parts of a script's run: its fits, loops and values in its output, one after the other."""

from bisect import bisect_right
from collections.abc import Sequence

from accel_engine.run.history.history import Part
from accel_tui.formatting.text import shorten

NAME_WIDTH = 24
"""Columns for the name of a part."""


def part_title(part: Part) -> str:
    """The number and name of a part, such as ``part 2 · fine_tuning``."""
    return f"part {part.started.part} · {shorten(part.started.name, NAME_WIDTH)}"


def part_of(parts: Sequence[Part], step: int) -> Part | None:
    """The part that took a step, counted from 0; ``None`` for a step before the first part, and without parts."""
    number = bisect_right(parts, step, key=lambda part: part.started.step)
    return parts[number - 1] if number else None
