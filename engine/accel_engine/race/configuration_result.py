"""What is known of a configuration in a race, at any time."""

from dataclasses import dataclass
from enum import StrEnum

from accel_engine.measure.trial_statistics import Comparison, Verdict
from accel_engine.race.configuration import Configuration
from accel_engine.race.loss_check import LossCheck


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
    """What a configuration is the best at."""

    FASTEST = "fastest"
    LEAST_MEMORY = "least memory"
    LEAST_ENERGY = "least energy"


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """What is known of a configuration.

    Attributes:
        configuration: The configuration.
        state: How far it is.
        reason: Why it ended early, failed, is refused or is not measured, if that is known; else empty.
        compile_seconds: How long it took to trace and compile a step, and to take it; ``None`` before.
        memory: Bytes that a device had allocated at most, or by which the process grew on a CPU; ``None`` if unknown.
        memory_of: ``host``, or the kind of device whose memory that is; empty before.
        losses: The check of its first losses; ``None`` before.
        rates: Examples a second of each turn.
        ratios: Its rates as shares of the reference's in the same rounds; empty without a reference.
        examples_per_second: The median, as if it had been measured beside all rounds of the reference.
        between: The confidence interval of that median.
        against_reference: How its rate compares with the reference's; ``None`` without rounds of both.
        joules: Joules an example; ``None`` if unknown.
        energy_of: ``cpu`` or ``gpu``, whose energy that is; empty if unknown.
        energy_problem: Why no energy is known; empty if it is.
    """

    configuration: Configuration
    state: ConfigurationState = ConfigurationState.WAITING
    reason: str = ""
    compile_seconds: float | None = None
    memory: float | None = None
    memory_of: str = ""
    losses: LossCheck | None = None
    rates: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    examples_per_second: float | None = None
    between: tuple[float, float] | None = None
    against_reference: Comparison | None = None
    joules: float | None = None
    energy_of: str = ""
    energy_problem: str = ""

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
        return self.against_reference is not None and self.against_reference.verdict is Verdict.BETTER
