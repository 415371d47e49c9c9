"""Turns single steps, which may have gaps, into chunks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MAX_GAP = 256
"""Maximum number of steps between two values that a chunk fills with NaN; beyond, each has its own chunk."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """The values of one step."""

    step: int
    """Number of the step, from 0."""
    time: float
    """When it ended, in seconds since the Unix epoch."""
    values: Mapping[str, float]
    """Values by series name; at least one."""


@dataclass(frozen=True, slots=True)
class StepChunk:
    """Consecutive steps, as :meth:`RunWriter.write_chunk` takes them."""

    first_step: int
    """Number of the first step, from 0."""
    started: float
    """Seconds since the Unix epoch."""
    ended: float
    """Seconds since the Unix epoch; equal to ``started`` if the speed of its steps is unknown."""
    series: dict[str, npt.NDArray[np.float32]]
    """Values by series name, float32 ``[n]``; NaN for steps without one."""


def chunks_of(rows: Sequence[StepRow], next_step: int, started: float) -> Iterator[StepChunk]:
    """Make chunks of rows with increasing steps.

    Steps between two rows become NaN, so that a chunk's steps took its time, unless there are very many of them.

    Args:
        rows: Their steps are at least ``next_step``.
        next_step: The step after the last one before the rows.
        started: When that ended, in seconds since the Unix epoch.
    """
    group: list[StepRow] = []
    first, expected = next_step, next_step
    for row in rows:
        if row.step - expected > MAX_GAP:
            if group:
                yield _chunk(group, first, started)
                started = group[-1].time
            yield _chunk([row], row.step, row.time)
            group, first, started = [], row.step + 1, row.time
        else:
            group.append(row)
        expected = row.step + 1
    if group:
        yield _chunk(group, first, started)


def _chunk(rows: Sequence[StepRow], first: int, started: float) -> StepChunk:
    count = rows[-1].step + 1 - first
    series: dict[str, npt.NDArray[np.float32]] = {}
    for row in rows:
        for name, value in row.values.items():
            if name not in series:
                series[name] = np.full(count, math.nan, np.float32)
            series[name][row.step - first] = value
    return StepChunk(first, started, rows[-1].time, series)
