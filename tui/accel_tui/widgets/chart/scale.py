"""X-axes other than steps: epochs, or time.

Curves are spaced by step all the same: a pause takes no room, and the labels before and after it are far apart in time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from accel_tui.formatting import figures
from accel_tui.run.curve import Curve, Floats
from accel_tui.widgets.chart.axes import Axis

_CELLS_A_LABEL = 9
_EPOCHS = tuple(digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5))
_SECONDS = (
    *(digit * 10.0**power for power in range(-6, 1) for digit in (1, 2, 5)),
    *(10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400 * digit * 10**power for power in range(4) for digit in (1, 2, 5)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """A quantity that grows with the steps of a run.

    Attributes:
        name: Its name.
        steps: Numbers of steps, rising.
        values: The quantity after so many steps; unknown before the first and after the last.
        rungs: Possible distances of labels, rising.
        write: Formats a value, given the distance of labels.
    """

    name: str
    steps: Floats
    values: Floats
    rungs: Sequence[float]
    write: Callable[[float, float], str]

    def at(self, steps: Floats) -> Floats:
        """The quantity after numbers of steps; NaN if unknown."""
        if not self.steps.size:
            return np.full(len(steps), math.nan)
        found: Floats = np.interp(steps, self.steps, self.values, left=math.nan, right=math.nan)
        return found

    def ticks(self, x: Axis, width: int) -> list[tuple[int, str]]:
        """Labels below a plot: column and text of round values.

        Of several in one column, the last.
        """
        edges = self.at(x.low + (x.high - x.low) * np.arange(width + 1) / width)
        grown = np.diff(edges)
        grown = grown[grown > 0]
        if not grown.size:
            return []
        distance = _CELLS_A_LABEL * float(np.median(grown))
        rung = next((rung for rung in self.rungs if rung >= distance), self.rungs[-1])
        before = np.ceil(edges / rung - 1e-6)  # number of round values before each edge
        cells = np.flatnonzero(before[1:] > before[:-1])
        found = [(int(cell), float(before[cell + 1]) - 1) for cell in cells]
        if abs(edges[-1] - before[-1] * rung) < 1e-6 * rung:
            found.append((width - 1, float(before[-1])))  # it ends with a round one
        return [(cell, self.write(number * rung, rung)) for cell, number in found]


def epochs(ended: Sequence[tuple[int, int]], steps_per_epoch: int | None, before: int = 0) -> Scale:
    """Epochs as x-axis, as far as their lengths are known.

    Args:
        ended: Number of steps at the end of some epochs, and the number of the epoch, from 1; rising.
        steps_per_epoch: Length of later epochs, if known.
        before: Number of epochs before the first step.
    """
    knots = [(0, before), *ended]
    if steps_per_epoch:
        step, epoch = knots[-1]
        knots.append((step + 1_000_000 * steps_per_epoch, epoch + 1_000_000))
    steps, values = np.array(knots, np.float64).T
    return Scale("epoch", steps, values, _EPOCHS, lambda value, _: f"{value:.6g}")


def seconds(ended: Curve) -> Scale:
    """Time since the first step began, including pauses and the time between engines.

    Args:
        ended: End time of each step, in seconds since the Unix epoch; of a bucket only the mean counts.
    """
    known = np.flatnonzero(ended.finite)
    starts = ended.first + known * ended.width
    taken = (starts + np.minimum(starts + ended.width, ended.count) + 1) / 2
    at = np.maximum.accumulate(ended.means[known])
    if len(at) > 1:  # extrapolated to the beginning of the first step and the end of the last one
        begun = at[0] - taken[0] * (at[1] - at[0]) / (taken[1] - taken[0])
        done = at[-1] + (ended.count - taken[-1]) * (at[-1] - at[-2]) / (taken[-1] - taken[-2])
        taken, at = (np.concatenate(parts) for parts in (([0.0], taken, [ended.count]), ([begun], at, [done])))
    return Scale("time", taken, at - at[0] if at.size else at, _SECONDS, _clock)


def _clock(value: float, rung: float) -> str:
    if rung >= 1:
        return figures.duration(value)
    return f"{value:.{max(0, -math.floor(math.log10(rung)))}f}s"
