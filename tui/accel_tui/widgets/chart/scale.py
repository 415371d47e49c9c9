"""X-axes other than steps: epochs, or time.

Curves are spaced by step all the same: a pause takes no room, and the labels before and after it are far apart in time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from accel_engine.words import numbers
from accel_tui.run_state.curve import Floats, RecordedCurve, step_times
from accel_tui.widgets.chart.axes import Axis

_CELLS_A_LABEL = 9
_EPOCHS = tuple(digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5))
_SECONDS = (
    *(digit * 10.0**power for power in range(-6, 1) for digit in (1, 2, 5)),
    *(10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400 * digit * 10**power for power in range(4) for digit in (1, 2, 5)),
)


@dataclass(frozen=True, slots=True, eq=False)
class XScale:
    """A quantity that grows with the steps of a run."""

    name: str
    steps: Floats
    """Numbers of steps, rising."""
    values: Floats
    """The quantity after each number of steps; unknown before the first and after the last."""
    step_sizes: Sequence[float]
    """Possible distances of labels, rising."""
    write: Callable[[float, float], str]
    """Formats a value, given the distance of labels."""

    def at(self, steps: Floats) -> Floats:
        """The quantity after numbers of steps; NaN if unknown."""
        if not self.steps.size:
            return np.full(len(steps), math.nan)
        return np.interp(steps, self.steps, self.values, left=math.nan, right=math.nan)

    def ticks(self, x: Axis, width: int) -> list[tuple[int, str]]:
        """Labels below a plot: column and text of round values.

        Of several in one column, the last.
        """
        edges = self.at(x.low + (x.high - x.low) * np.arange(width + 1) / width)
        growth = np.diff(edges)
        growth = growth[growth > 0]
        if not growth.size:
            return []
        distance = _CELLS_A_LABEL * float(np.median(growth))
        step_size = next((step_size for step_size in self.step_sizes if step_size >= distance), self.step_sizes[-1])
        before = np.ceil(edges / step_size - 1e-6)  # number of round values before each edge
        cells = np.flatnonzero(before[1:] > before[:-1])
        found = [(int(cell), float(before[cell + 1]) - 1) for cell in cells]
        if abs(edges[-1] - before[-1] * step_size) < 1e-6 * step_size:
            found.append((width - 1, float(before[-1])))  # it ends with a round one
        return [(cell, self.write(number * step_size, step_size)) for cell, number in found]


def epochs(ended: Sequence[tuple[int, int]], steps_per_epoch: int | None, before: int = 0) -> XScale:
    """Epochs as x-axis, up to the first epoch of unknown length.

    Args:
        ended: Number of steps at the end of some epochs, and the number of the epoch, from 1; rising.
        steps_per_epoch: Length of later epochs, if known.
        before: Number of epochs before the first step.
    """
    points = [(0, before), *ended]
    if steps_per_epoch:
        step, epoch = points[-1]
        points.append((step + 1_000_000 * steps_per_epoch, epoch + 1_000_000))
    steps, values = np.array(points, np.float64).T
    return XScale("epoch", steps, values, _EPOCHS, lambda value, _: f"{value:.6g}")


def seconds(step_end_times: RecordedCurve) -> XScale:
    """Time since the first step began, including pauses and the time between engines.

    Args:
        step_end_times: End time of each step, in seconds since the Unix epoch; of a bucket only the mean counts.
    """
    steps, times = step_times(step_end_times)
    return XScale("time", steps, times - times[:1], _SECONDS, _clock)


def _clock(value: float, step_size: float) -> str:
    if step_size >= 1:
        return numbers.duration(value)
    return f"{value:.{max(0, -math.floor(math.log10(step_size)))}f}s"
