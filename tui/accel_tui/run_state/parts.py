"""The parts of a script's run: its fits, loops and values in its output, one after the other."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine import events
from accel_tui.formatting.text import shorten

NAME_WIDTH = 24
"""Columns for the name of a part."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a script's run.

    Attributes:
        started: Its start.
        built: Its model; ``None`` before it is known, and for values in the output.
        ended: Its end; ``None`` before it, and if the run was lost.
    """

    started: events.PartStarted
    built: events.ModelBuilt | None = None
    ended: events.PartEnded | None = None

    @property
    def title(self) -> str:
        """Its number and name, such as ``part 2 · fine_tuning``."""
        return f"part {self.started.part} · {shorten(self.started.name, NAME_WIDTH)}"


def part_of(parts: Sequence[Part], step: int) -> Part | None:
    """The part that took a step, counted from 0; ``None`` for a step before the first part, and without parts."""
    number = bisect_right(parts, step, key=lambda part: part.started.step)
    return parts[number - 1] if number else None
