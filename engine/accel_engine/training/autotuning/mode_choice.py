"""Says which other execution mode may be faster, and compares two that take the steps of a run in turns."""

import statistics
from dataclasses import dataclass

import tensorflow as tf

from accel_engine.data.structure import has_texts
from accel_engine.keras_support.model_structure import walk
from accel_engine.measure.cache import Rate
from accel_engine.measure.trial_statistics import LEAST_ROUNDS, RELEVANT, compare_rates
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.device_visibility import are_newer_than_build
from accel_engine.training.core.loop import ChunkResult, ExecutionMode
from accel_engine.training.core.micro_batches import candidate_count, supports_micro_batches
from accel_engine.training.core.step_rate import ChunkRate

TURN_SECONDS = 0.1
"""How long a turn takes at least."""

TURN_CHUNKS = 2
"""The fewest chunks of a turn."""

ROUNDS = 15
"""Turns of each mode at most, among which a few that are disturbed hide no difference."""


@dataclass(frozen=True, slots=True)
class TrialSpeeds:
    """The rates that a trial measured."""

    default: Rate
    """Steps per second in the plan's mode; the median of its turns."""
    alternative: Rate
    """Steps per second in the alternative mode; 0 if it cannot run the step."""
    settled: bool = True
    """Whether the rounds tell which is faster; not where something else used the machine."""
    compile_seconds: float = 0.0
    """How long the alternative mode took to trace and compile while training went on."""

    @property
    def alternative_is_faster(self) -> bool:
        """Whether the alternative mode is faster by as much as matters."""
        return self.alternative > RELEVANT * self.default

    @property
    def gain(self) -> float:
        """The rate of the faster mode, divided by the rate of the plan's mode; at least 1."""
        return max(1.0, self.alternative / self.default)

    def pays(self, steps_left: float) -> bool:
        """Whether these steps gain more time in the faster mode than it takes to compile the alternative one."""
        return steps_left / self.default * (1 - 1 / self.gain) > self.compile_seconds


class ModeTrial:
    """Collects the rates of turns.

    The alternative mode begins with a turn that does not count, in which the length of its chunks is adapted. Then
    both take turns, so that what slows the machine down for longer than a turn slows both.

    Attributes:
        on_alternative: Whether it is the turn of the alternative mode.
    """

    def __init__(self) -> None:
        self.on_alternative = True
        self._warm = False
        self._rates: tuple[list[float], list[float]] = ([], [])
        self._turn = ChunkRate()

    def add(self, chunk: ChunkResult) -> None:
        """Add a chunk of the mode whose turn it is."""
        self._turn.add(chunk)
        if self._turn.chunks < TURN_CHUNKS or self._turn.seconds < TURN_SECONDS:
            return
        if self._warm:
            self._rates[self.on_alternative].append(self._turn.value)
        self._warm = True
        self.on_alternative = not self.on_alternative
        self._turn = ChunkRate()

    @property
    def has_ended(self) -> bool:
        """Whether there are enough rounds."""
        rounds = len(self._rates[0])
        if rounds != len(self._rates[1]) or rounds < LEAST_ROUNDS:
            return False
        return rounds >= ROUNDS or compare_rates(*self._rates).is_settled

    @property
    def speeds(self) -> TrialSpeeds:
        """The rates of a trial that has ended."""
        default, alternative = map(statistics.median, self._rates)
        return TrialSpeeds(default, alternative, settled=compare_rates(*self._rates).is_settled)


WINDOW_SECONDS = 2.0
"""Steps of this many seconds give a rate."""

_CHANGED = 1.33
"""How much the rate must differ, as a ratio, to look again at which mode is faster."""

FIRST_PAUSE_SECONDS = 20.0
"""Seconds of training between the first two trials; doubled for each further one."""


class ModeChoice:
    """Chooses by trials: the first one at once, others where the rate of the faster mode has changed."""

    def __init__(self) -> None:
        self._trial: ModeTrial | None = None
        self._alternative_is_faster = False
        self._watch = RateWatch()

    @property
    def uses_alternative(self) -> bool:
        """Whether the alternative mode takes the next steps, rather than the plan's."""
        return self._trial.on_alternative if self._trial else self._alternative_is_faster

    @property
    def is_trying(self) -> bool:
        """Whether a trial is going on, or begins after the next chunk."""
        return self._trial is not None or self._watch.trial_is_due

    @property
    def is_settled(self) -> bool:
        """Whether the faster mode is known, and no trial is going on."""
        return self._trial is None and self._watch.is_settled

    def use(self, speeds: TrialSpeeds) -> None:
        """Use the faster mode of a trial that has ended."""
        self._trial = None
        self._alternative_is_faster = speeds.alternative_is_faster
        self._watch.expect(max(speeds.default, speeds.alternative), settled=speeds.settled)

    def add(self, chunk: ChunkResult) -> TrialSpeeds | None:
        """Add a chunk of the mode in use; returns the rates of a trial that ends with it."""
        if self._trial is None:
            self._watch.add(chunk)
            self._trial = ModeTrial() if self._watch.trial_is_due else None
            return None
        self._trial.add(chunk)
        if not self._trial.has_ended:
            return None
        speeds = self._trial.speeds
        self.use(speeds)
        return speeds


class RateWatch:
    """Compares the rate of a run with the one that a trial measured.

    Attributes:
        is_settled: Whether a rate was measured, undisturbed.
    """

    def __init__(self) -> None:
        self._expected, self.is_settled = 0.0, False
        self._pause, self._since = 0.0, 0.0
        self._window = ChunkRate()
        self._has_changed = False

    def expect(self, rate: float, *, settled: bool) -> None:
        """Begin with the rate that was measured.

        Args:
            rate: Steps per second of the mode that was chosen.
            settled: Whether the measurement was undisturbed; another one follows after a pause if not.
        """
        self._expected, self.is_settled = rate, settled
        self._pause, self._since = 2 * self._pause or FIRST_PAUSE_SECONDS, 0.0
        self._window = ChunkRate()
        self._has_changed = False

    def add(self, chunk: ChunkResult) -> None:
        """Add a chunk in the mode that was chosen."""
        self._since += chunk.seconds
        self._window.add(chunk)
        if self._window.seconds >= WINDOW_SECONDS:
            ratio = self._window.value / self._expected if self._expected else 1.0
            self._has_changed = max(ratio, 1 / ratio) > _CHANGED
            self._window = ChunkRate()

    @property
    def trial_is_due(self) -> bool:
        """Whether a trial is due: the first one at once."""
        return self._since >= self._pause and (self._has_changed or not self.is_settled)


def plan_mode(assembly: Assembly) -> ExecutionMode:
    """The execution mode that the plan says, without XLA where it leaves the choice."""
    return ExecutionMode(assembly.plan.xla == "on" or assembly.on_tpu, assembly.plan.micro_batches or 1)


def alternative_mode(assembly: Assembly, default: ExecutionMode) -> ExecutionMode | None:
    """The mode that may be faster than the plan's and that the plan allows; ``None`` where a trial makes no sense.

    There is none for a plan that computes in the same way each time, for a custom ``train_step``, whose Python must not
    run more often than it should, nor with other workers, which would have to agree on it.

    XLA is not tried on a TPU, which compiles everything; nor for a pipeline or state on the host, as it compiles for
    one device; nor with several replicas, which CPUs and central storage do not support, and with which it is known to
    hang or abort on GPUs (TensorFlow's issues 53140, 56423, 61314); nor on a GPU that is newer than TensorFlow's build,
    where it aborts; nor for texts, which it cannot compile; nor for convolutions on a CPU, which took 6 to 12 seconds
    to compile and ran 2 to 5 times slower in all measurements. These are tried in micro-batches instead, if that
    changes nothing but the rounding of sums.
    """
    plan = assembly.plan
    if assembly.has_custom_train_step or not assembly.single_process or assembly.on_tpu or plan.deterministic == "on":
        return None
    if has_texts(assembly.dataset.spec) or assembly.replicas > 1 or assembly.stages is not None:
        return None
    if plan.optimizer_state == "host":
        return None
    stored = isinstance(assembly.strategy, tf.distribute.experimental.CentralStorageStrategy)
    if not assembly.on_cpu and (stored or are_newer_than_build()):
        return None
    if not assembly.on_cpu or not any("conv" in type(layer).__name__.lower() for layer, _ in walk(assembly.model)):
        return ExecutionMode(True, default.micro_batches) if plan.xla == "auto" else None
    count = candidate_count(assembly.step_counts.per_replica_batch)
    allowed = plan.micro_batches is None and plan.xla != "on" and count > 1
    return ExecutionMode(micro_batches=count) if allowed and supports_micro_batches(assembly.model) else None
