"""The loss over an exponential ramp of the learning rate, of several trainings, and its smoothing.

Smith, Cyclical Learning Rates for Training Neural Networks, 2015, section 3.3: the rate rises at each step of a short
training, and the loss tells which rates train. Steps at equal factors are equally spaced on a logarithmic axis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_NORMAL_QUARTILE = 0.6745
"""The median of the absolute values of a standard normal distribution."""

Floats = npt.NDArray[np.float64]

SMOOTHING = 1 / 30
"""Standard deviation of the smoothing, as a share of the ramp: about a quarter of a decade of the default ramp. It is
symmetric: the usual running average would move the curve towards higher rates."""

EXPLODED = 2.0
"""A loss this many times its size at the start above it has exploded."""

NOISE = 10.0
"""It is also this many times the spread of the first losses above them, where the loss is about 0."""

FIRST = 8
"""Steps at the start of a ramp, whose rates change nothing yet, that give the level to compare with."""

LAST = 3
"""Steps in a row that have to be that high."""


def ramp_rates(lowest: float, highest: float, steps: int) -> list[float]:
    """Learning rates that rise by the same factor from step to step.

    Args:
        lowest: The first one, above 0.
        highest: The last one, above it.
        steps: Their number, at least 2.
    """
    factor = (highest / lowest) ** (1 / (steps - 1))
    return [lowest * factor**step for step in range(steps)]


def has_exploded(losses: Sequence[float]) -> bool:
    """Whether the losses of a ramp so far say that higher rates only destroy the model."""
    if losses and not math.isfinite(losses[-1]):
        return True
    if len(losses) < FIRST + LAST:
        return False
    first = np.array(losses[:FIRST])
    level, spread = float(np.median(first)), float(np.ptp(first))
    return min(losses[-LAST:]) > level + max(EXPLODED * abs(level), NOISE * spread)


@dataclass(frozen=True, slots=True)
class Ramp:
    """One training whose learning rate rose."""

    seed: int
    """The seed of the order of its examples."""
    rates: tuple[float, ...]
    """The optimizer's rate of each step, ``[steps]``."""
    losses: tuple[float, ...]
    """The loss after the update with each rate, ``[steps]``, all finite."""
    has_exploded: bool
    """Whether it ended because the loss exploded."""

    @classmethod
    def of(cls, seed: int, rates: Sequence[float], losses: Sequence[float]) -> "Ramp":
        """The ramp of the losses of steps, of which the first has seen no update yet.

        Args:
            seed: The seed of the order of its examples.
            rates: The rate of each step.
            losses: Its loss, before its update; fewer if the training ended before the last rate.
        """
        after = [loss for loss in losses[1:] if math.isfinite(loss)]
        return cls(seed, tuple(rates[: len(after)]), tuple(after), has_exploded(losses))


@dataclass(frozen=True, slots=True)
class RateCurve:
    """A smoothed loss by learning rate."""

    rates: Floats
    """The rates, ``[points]``, rising."""
    losses: Floats
    """The smoothed loss at each, ``[points]``."""
    noise: float
    """The standard error of the difference of a smoothed loss and the level."""
    level: float
    """The loss at the start."""
    has_exploded: bool
    """Whether the curve ends because a loss exploded."""


def smoothed_curve(ramps: Sequence[Ramp]) -> RateCurve:
    """The mean of some ramps over the same rates, smoothed, as far as all of them go.

    Args:
        ramps: At least one.
    """
    count = min(len(ramp.rates) for ramp in ramps)
    rates = np.array(ramps[0].rates[:count])
    every = np.array([ramp.losses[:count] for ramp in ramps], np.float64).reshape(len(ramps), count)
    mean = every.mean(axis=0)
    losses = smooth(mean)
    first = mean[:FIRST]
    return RateCurve(
        rates,
        losses,
        _standard_error(mean),
        float(np.median(first)) if len(first) else math.nan,
        any(ramp.has_exploded for ramp in ramps),
    )


def smooth(values: Floats) -> Floats:
    """The mean around each value, weighted by a normal distribution; the same at the ends, with fewer values."""
    if len(values) < 2:
        return values
    width = _width(len(values))
    positions = np.arange(len(values))
    weights = np.exp(-0.5 * np.square((positions[:, np.newaxis] - positions) / width))
    return weights @ values / weights.sum(axis=1)


def _width(count: int) -> float:
    return max(1.0, SMOOTHING * count)


def _standard_error(values: Floats) -> float:
    """The standard error of the difference between a smoothed value and the level.

    The differences of neighbours tell, which a slow change hardly enters: the variance of second differences is 6 times
    the one of a value.
    """
    if len(values) < 3:
        return 0.0
    deviation = float(np.median(np.abs(np.diff(values, 2)))) / _NORMAL_QUARTILE / math.sqrt(6)
    of_smoothed = deviation / math.sqrt(2 * math.sqrt(math.pi) * _width(len(values)))
    of_level = deviation * math.sqrt(math.pi / 2 / min(FIRST, len(values)))
    return math.hypot(of_smoothed, of_level)
