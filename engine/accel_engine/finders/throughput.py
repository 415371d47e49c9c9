"""Chooses among batch sizes whose throughput was measured; without TensorFlow.

Throughput grows with the batch until the devices are busy, and then hardly. The knee is the smallest batch whose
throughput is at least :data:`KNEE_SHARE` of the fastest one's. A share is used, not the point of the largest curvature:
that moves with the scale of the axes and with every noisy point, and does not say what is given up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from accel_engine.errors import UsageError
from accel_engine.finders.batch_effects import BatchEffects, batch_effects
from accel_engine.measure.trial_statistics import APART
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import scaling_factor
from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.try_plan import TrialReady

KNEE_SHARE = 0.9
"""Share of the fastest throughput that the knee reaches. If overhead and work add up, ``b / (b + c)``, it is reached at
nine times the batch whose overhead equals its work; 0.95 would need nineteen times that, for 5 percent."""

MARGIN = 0.1
"""Share of the memory that the largest size leaves free, for what differs from step to step and beside the training."""


@dataclass(frozen=True, slots=True)
class MeasuredSize:
    """A batch size that was tried."""

    batch_size: int
    """The global batch."""
    per_replica: int
    """Examples of each replica."""
    throughput: float = math.nan
    """Examples a second; NaN if it could not be trained."""
    low: float = math.nan
    """Lower end of the interval of the throughput."""
    high: float = math.nan
    """Its upper end."""
    memory: float | None = None
    """Bytes that a device had allocated at most, or by which the process grew; ``None`` if unknown."""
    problem: str = ""
    """Why it could not be trained; empty if it could."""
    out_of_memory: bool = False
    """Whether memory was the reason."""
    validation_seconds: float = 0.0
    """How long a validation took; 0 without one."""
    was_skipped: bool = False
    """Whether it was not tried, as it would not have fit."""

    @property
    def fits(self) -> bool:
        """Whether it trains."""
        return not self.problem

    @property
    def steps_per_second(self) -> float:
        """Mean number of steps per second, from the examples per second."""
        return self.throughput / self.batch_size


@dataclass(frozen=True, slots=True)
class ChosenSizes:
    """The sizes that matter."""

    knee: MeasuredSize
    """The smallest one that is nearly as fast as the fastest."""
    fastest: MeasuredSize
    """The fastest one."""
    largest: MeasuredSize
    """The largest one that was measured and leaves some memory free."""


def choose_sizes(measured: Sequence[MeasuredSize], memory: float | None) -> ChosenSizes | None:
    """The sizes that matter; ``None`` if none trains.

    Args:
        measured: What was tried, in any order.
        memory: Bytes that a training may take; ``None`` if unknown.
    """
    fitting = [each for each in sorted(measured, key=lambda each: each.batch_size) if each.fits]
    with_margin = [each for each in fitting if leaves_margin(each, memory)] or fitting[:1]
    if not with_margin:
        return None
    fastest = max(with_margin, key=lambda each: each.throughput)
    knee = next(each for each in with_margin if each.throughput >= KNEE_SHARE * fastest.throughput)
    return ChosenSizes(knee, fastest, with_margin[-1])


def leaves_margin(size: MeasuredSize, memory: float | None) -> bool:
    """Whether a size leaves some memory free, as far as is known."""
    return size.memory is None or memory is None or size.memory <= (1 - MARGIN) * memory


def got_slower(measured: Sequence[MeasuredSize]) -> bool:
    """Whether the last two of rising sizes are both clearly slower than the fastest one."""
    fitting = [each for each in measured if each.fits]
    if len(fitting) < 3:
        return False
    fastest = max(each.throughput for each in fitting)
    return all(each.high < fastest and APART * each.throughput < fastest for each in fitting[-2:])


def sizes_between(measured: Sequence[MeasuredSize], knee: int, multiple: int) -> list[int]:
    """Sizes that doubling leaves out: below the knee, and above the largest one that fits if memory ran out.

    Args:
        measured: The sizes that were tried.
        knee: The knee among them.
        multiple: What sizes must be a multiple of: the number of replicas times the micro-batches.
    """
    known = {each.batch_size for each in measured}
    wanted = [3 * knee // 4]
    fitting = [each.batch_size for each in measured if each.fits]
    if fitting and any(each.out_of_memory for each in measured):
        wanted.append(3 * max(fitting) // 2)
    rounded = [size // multiple * multiple for size in wanted]
    return [size for size in dict.fromkeys(rounded) if size >= multiple and size not in known]


def predicted_memory(measured: Sequence[MeasuredSize], batch_size: int) -> float | None:
    """Bytes that a larger batch would take, from a line through the last two sizes; ``None`` if that is unknown."""
    known = [(each.batch_size, each.memory) for each in measured if each.fits and each.memory is not None]
    if len(known) < 2:
        return None
    (size, memory), (larger, more) = sorted(known)[-2:]
    slope = max(0.0, (more - memory) / (larger - size))
    return more + slope * (batch_size - larger)


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """Which sizes are measured.

    Raises:
        UsageError: The range is empty or reversed.
    """

    seconds: float = option(2.0, OptionSpec("Steps of each size.", float, minimum=0.1, label="time each"))
    smallest: int | None = option(
        None, OptionSpec("Global batch to begin at.", int, minimum=1, optional=True, hint="8 for each replica")
    )
    largest: int | None = option(
        None, OptionSpec("Largest global batch to try.", int, minimum=1, optional=True, hint="all that fit")
    )

    def __post_init__(self) -> None:
        if self.smallest is not None and self.largest is not None and self.smallest > self.largest:
            raise UsageError(f"the smallest batch size, {self.smallest}, must not be above the largest, {self.largest}")


@dataclass(frozen=True, slots=True)
class SizeProgress:
    """How far the search is."""

    detail: str
    """The present phase, in words."""
    measured: tuple[MeasuredSize, ...] = ()
    """The sizes that have been measured."""
    size: int = 0
    """The batch size that is measured now; 0 before the first."""
    confirms: bool = False
    """Whether the size that is the answer is measured again."""
    seconds_left: float | None = None
    """Seconds for the rest, if each size takes as long as the measured ones; ``None`` if unknown."""


OnSize = Callable[[SizeProgress], object]


@dataclass(frozen=True, slots=True)
class FoundSize:
    """The result of the search for a batch size."""

    measured: tuple[MeasuredSize, ...]
    """All sizes that were tried, rising."""
    chosen: ChosenSizes | None
    """The sizes that matter; ``None`` if none trains."""
    confirmed: MeasuredSize | None
    """The answer as measured again in a fresh process; ``None`` if none trains."""
    effects: BatchEffects | None
    """The effects of the answer on learning rate and steps; ``None`` if none trains."""
    replicas: int
    memory: float | None
    """Bytes that a training may take, of the host for CPUs, else of each device; ``None`` if unknown."""
    stopped: str
    """Why no larger size was tried, in words."""
    plan: Plan
    ready: TrialReady | None = field(default=None, repr=False)
    """The engine's description of the plan's steps; ``None`` if none trains."""
    noise_scale: float | None = None
    """What a run of this plan has recorded of its gradients, in examples; ``None`` if unknown."""

    @property
    def batch_size(self) -> int | None:
        """The global batch to take; ``None`` if none trains."""
        return self.confirmed.batch_size if self.confirmed else None

    def effects_of(self, size: int) -> BatchEffects | None:
        """The effects of a size on learning rate and steps; ``None`` if none trains."""
        if self.ready is None:
            return None
        ready, plan = self.ready, self.plan
        factor = scaling_factor(plan, self.replicas) * plan.learning_rate_factor
        rate = plan.learning_rate or (None if ready.learning_rate is None else ready.learning_rate / factor)
        return batch_effects(
            plan,
            size,
            self.replicas,
            optimizer=ready.optimizer,
            rate=rate,
            examples=ready.examples,
            noise_scale=self.noise_scale,
        )


AROUND = 2
"""The most sizes of :func:`sizes_between`."""


def expected_sizes(size: int, largest: int | None) -> int | None:
    """How many sizes are measured at most: one, twice it and so on up to the largest, and :data:`AROUND` between them.

    Args:
        size: The first one.
        largest: The largest one; ``None`` if it is unknown, as the number is then.
    """
    return None if largest is None else (largest // size).bit_length() + AROUND
