"""A configuration of a plan: the plan with some fields changed."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from accel_engine.measure.trial_statistics import PlanComparison, PlanVerdict
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import options_text


class ConfigurationKind(StrEnum):
    """The kind of change in a configuration, as users name it."""

    DEVICES = "devices"
    XLA = "xla"
    PRECISION = "precision"
    MICRO_BATCHES = "micro-batches"
    REMAT = "remat"
    THREADS = "threads"
    LAYER_KERNELS = "layer-kernels"
    BATCH_SIZE = "batch-size"


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration of a plan."""

    title: str
    """A short name, unique in a race."""
    plan: Plan
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The fields that differ from the reference, with their values; empty for the reference."""
    kinds: tuple[ConfigurationKind, ...] = ()
    """The kinds of its changes."""
    changes_updates: bool = False
    """Whether its updates are synchronous and the reference's are not."""

    @property
    def is_reference(self) -> bool:
        """Whether it is the plan without a change."""
        return not self.changes

    @property
    def changes_training(self) -> bool:
        """Whether it takes other steps than the reference."""
        return bool(self.other_training)

    @property
    def other_training(self) -> str:
        """The differences in its steps for which losses cannot be compared; empty if there are none."""
        if ConfigurationKind.BATCH_SIZE in self.kinds:
            return "other batches"
        return "other updates" if self.changes_updates else ""

    @property
    def options(self) -> str:
        """The changes as options of the command line."""
        return options_text(self.changes)


@dataclass(frozen=True, slots=True)
class UnsupportedConfiguration:
    """A configuration that cannot be run on this machine."""

    configuration: Configuration
    reason: str
    """Why it cannot be run."""


CLOSE = 1e-5
"""The largest difference of losses, as a share of their mean, that comes from another order of rounding."""

LEAST_MEAN = 1e-12
"""Mean loss below which differences are shares of this instead: losses of zero have no share."""


@dataclass(frozen=True, slots=True)
class LossCheck:
    """How the first losses of a configuration compare with the reference's."""

    difference: float | None = None
    """The largest difference, as a share of the mean of the reference's absolute losses, so that the tiny loss of a
    small last batch does not count more than others; ``None`` if they cannot be compared."""
    steps: int = 0
    """Number of compared steps."""
    is_equal: bool = False
    """Whether they are equal to the bit."""
    problem: str = ""
    """Why they cannot be compared; empty if they can."""

    @property
    def text(self) -> str:
        """The result in words."""
        if self.difference is None:
            return self.problem
        if self.is_equal:
            return "equal to the bit"
        if self.is_broken:
            return "finite in only one of the two"
        return "within 1e-5" if self.is_close else f"differs by {float(f'{100 * self.difference:.2g}'):g}%"

    @property
    def is_close(self) -> bool:
        """Whether they differ by no more than another order of rounding explains."""
        return self.difference is not None and self.difference <= CLOSE

    @property
    def is_broken(self) -> bool:
        """Whether only one of them has losses that are not finite."""
        return self.difference is not None and not math.isfinite(self.difference)


def check_losses(reference: Sequence[float], losses: Sequence[float]) -> LossCheck:
    """Compare losses of the same steps.

    Args:
        reference: The reference's losses.
        losses: The configuration's losses; of more or fewer steps, only the common ones count.
    """
    pairs = list(zip(reference, losses, strict=False))
    if not pairs:
        return LossCheck(problem="no losses to compare")
    is_equal = all(first == second or (math.isnan(first) and math.isnan(second)) for first, second in pairs)
    finite = [abs(first) for first, _ in pairs if math.isfinite(first)]
    mean = statistics.fmean(finite) if finite else 0.0
    difference = 0.0 if is_equal else max(_difference(first, second, mean) for first, second in pairs)
    return LossCheck(difference, len(pairs), is_equal)


def _difference(first: float, second: float, mean: float) -> float:
    if not (math.isfinite(first) and math.isfinite(second)):
        return 0.0 if str(first) == str(second) else math.inf
    return abs(first - second) / max(mean, LEAST_MEAN)


@dataclass(frozen=True, slots=True)
class LearnedValue:
    """The metric of a plan after as many examples as the reference."""

    metric: str
    """The metric that is compared, such as ``validation loss``."""
    value: float
    """Its mean over the orders of the examples; not finite if one is not."""
    between: tuple[float, float] | None = None
    """Its confidence interval if the reference's value is exact; ``None`` for the reference, and with too few
    orders."""


class ConfigurationState(StrEnum):
    """How far a configuration is."""

    WAITING = "waiting"
    COMPILING = "compiling"
    READY = "ready"
    MEASURING = "measuring"
    FINISHED = "finished"
    ENDED_EARLY = "ended early"
    FAILED = "failed"
    REFUSED = "refused"
    NOT_MEASURED = "not measured"


class Best(StrEnum):
    """The figure at which a configuration is the best."""

    FASTEST = "fastest"
    LEAST_MEMORY = "least memory"
    LEAST_ENERGY = "least energy"


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """The state and the measurements of a configuration."""

    configuration: Configuration
    state: ConfigurationState = ConfigurationState.WAITING
    """How far it is."""
    reason: str = ""
    """Why it ended early, failed, is refused or is not measured, if that is known; else empty."""
    compile_seconds: float | None = None
    """How long it took to trace and compile a step, and to take it; ``None`` before."""
    memory: float | None = None
    """Bytes that a device had allocated at most, or by which the process grew on a CPU; ``None`` if unknown."""
    memory_of: str = ""
    """``host``, or the kind of device whose memory that is; empty before."""
    losses: LossCheck | None = None
    """The check of its first losses; ``None`` before."""
    rates: tuple[float, ...] = ()
    """Examples a second of each turn."""
    ratios: tuple[float, ...] = ()
    """Its rates as shares of the reference's in the same rounds; empty without a reference."""
    examples_per_second: float | None = None
    """The median, as if it had been measured beside all rounds of the reference."""
    between: tuple[float, float] | None = None
    """The confidence interval of that median."""
    against_reference: PlanComparison | None = None
    """How its rate compares with the reference's; ``None`` without rounds of both."""
    joules: float | None = None
    """Joules an example; ``None`` if unknown."""
    energy_of: str = ""
    """``cpu`` or ``gpu``, whose energy that is; empty if unknown."""
    energy_problem: str = ""
    """Why no energy is known; empty if it is."""
    learned: LearnedValue | None = None
    """The metric that it has reached, where that is compared; else ``None``."""

    @property
    def title(self) -> str:
        """The configuration's title."""
        return self.configuration.title

    @property
    def is_measured(self) -> bool:
        """Whether it has a rate, and has not failed."""
        return self.examples_per_second is not None and self.state is not ConfigurationState.FAILED

    @property
    def is_faster(self) -> bool:
        """Whether it is clearly faster than the reference."""
        return self.against_reference is not None and self.against_reference.verdict is PlanVerdict.BETTER
