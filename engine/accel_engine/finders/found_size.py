"""How batch sizes are measured, and what was found, as plain values."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from accel_engine.errors import UsageError
from accel_engine.finders.batch_effects import BatchEffects, batch_effects
from accel_engine.finders.throughput import ChosenSizes, MeasuredSize
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import scaling_factor
from accel_engine.requests.try_plan import TrialReady


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """Which sizes are measured.

    Attributes:
        seconds: How long each takes steps, about.
        smallest: The first global batch; ``None`` for 8 examples of each replica.
        largest: The largest global batch; ``None`` for all that fit.

    Raises:
        UsageError: The range is empty or reversed.
    """

    seconds: float = 2.0
    smallest: int | None = None
    largest: int | None = None

    def __post_init__(self) -> None:
        if self.smallest is not None and self.largest is not None and self.smallest > self.largest:
            raise UsageError(f"the smallest batch size, {self.smallest}, must not be above the largest, {self.largest}")


@dataclass(frozen=True, slots=True)
class SizeProgress:
    """How far the search is.

    Attributes:
        detail: What happens now, in words.
        measured: What has been measured.
        size: The batch size that is measured now; 0 before the first.
        confirms: Whether it is measured again, as it is the answer.
        seconds_left: What the rest takes if each size takes as long as those before; ``None`` if unknown.
    """

    detail: str
    measured: tuple[MeasuredSize, ...] = ()
    size: int = 0
    confirms: bool = False
    seconds_left: float | None = None


OnSize = Callable[[SizeProgress], object]


@dataclass(frozen=True, slots=True)
class FoundSize:
    """What was found.

    Attributes:
        measured: All sizes that were tried, rising.
        chosen: The ones that matter; ``None`` if none trains.
        confirmed: The answer as measured again in a fresh process; ``None`` if none trains.
        effects: What the answer means for learning rate and steps; ``None`` if none trains.
        replicas: Number of replicas.
        memory: Bytes that a training may take, of the host for CPUs, else of each device; ``None`` if unknown.
        stopped: Why no larger size was tried, in words.
        plan: The plan.
        ready: What is known of its training; ``None`` if none trains.
        noise_scale: What a run of this plan has recorded of its gradients, in examples; ``None`` if unknown.
    """

    measured: tuple[MeasuredSize, ...]
    chosen: ChosenSizes | None
    confirmed: MeasuredSize | None
    effects: BatchEffects | None
    replicas: int
    memory: float | None
    stopped: str
    plan: Plan
    ready: TrialReady | None = field(default=None, repr=False)
    noise_scale: float | None = None

    @property
    def batch_size(self) -> int | None:
        """The global batch to take; ``None`` if none trains."""
        return self.confirmed.batch_size if self.confirmed else None

    def effects_of(self, size: int) -> BatchEffects | None:
        """What a size means for learning rate and steps; ``None`` if none trains."""
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
"""Sizes that may be measured around the knee and above the largest; see :func:`.throughput.sizes_between`."""


class RemainingSizes:
    """Expects sizes, and measures how long they take.

    Args:
        longer: Seconds by which the answer is measured longer than a size.
        clock: Monotonic seconds.
    """

    def __init__(self, longer: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longer, self._clock = longer, clock
        self._began = clock()
        self._taken: list[float] = []
        self._expected: int | None = None

    def expect(self, sizes: int) -> None:
        """Expect so many sizes, that of now included, and after them the answer, once."""
        self._expected = sizes

    def expect_doublings(self, size: int, largest: int | None) -> None:
        """Expect a size, twice it and so on up to the largest, which may be unknown, and some around the knee."""
        if largest is None:
            self._expected = None
        else:
            self.expect((largest // size).bit_length() + AROUND)

    def begin(self) -> None:
        """Begin a size, or the answer."""
        self._began = self._clock()

    def end(self) -> None:
        """End a size; the answer takes longer, and says nothing about others."""
        self._taken.append(self._clock() - self._began)

    def seconds_left(self) -> float | None:
        """Seconds that all of them take if each takes as long as those before; ``None`` if that is unknown."""
        if self._expected is None or not self._taken:
            return None
        in_all = statistics.fmean(self._taken) * (self._expected + 1) + self._longer
        return max(0.0, in_all - (self._clock() - self._began))
