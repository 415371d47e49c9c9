"""The number of threads per operation of a run on a CPU: chosen at its start, and remembered with the run's rate.

With micro-batches, which each core computes by itself, one thread made a convolutional network 1.2 to 1.3 times as
fast; without, it made ``resnet20`` slower (``benchmarks/README.md``). TensorFlow cannot change the number while it
runs, so no run tries another one: rates come from runs that a user starts with another number.
"""

import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from accel_engine.devices.device_types import Inventory
from accel_engine.devices.host_probe import processors
from accel_engine.events import ThreadsChosen, Warned
from accel_engine.inference.measurement.window import LAST, TOLERANCE, deviation
from accel_engine.measure.cache import Cache, Rate, key_of
from accel_engine.measure.trial_statistics import APART
from accel_engine.models import UserModel
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.training.core.device_visibility import threads_of_user
from accel_engine.training.core.loop import ChunkResult, ExecutionMode
from accel_engine.training.core.step_rate import ChunkRate
from accel_engine.training.reporting.run_reporter import RunReporter


class ThreadSource(StrEnum):
    """Where a number of threads comes from."""

    TENSORFLOW = "tensorflow"
    PLAN = "plan"
    ENVIRONMENT = "environment"
    EARLIER_RUNS = "earlier runs"


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """The number of threads per operation of a run."""

    count: int
    """The number of threads."""
    default: int
    """TensorFlow's own: the number of processors."""
    source: ThreadSource
    """Where it comes from."""
    rate: float = 0.0
    """Steps per second of an earlier run with ``count`` threads; 0 unless the choice is because of it."""
    default_rate: float = 0.0
    """The same with ``default`` threads."""

    @property
    def setting(self) -> int | None:
        """The number to set in TensorFlow; ``None`` if it uses that number by itself."""
        return self.count if self.source in (ThreadSource.PLAN, ThreadSource.EARLIER_RUNS) else None


def choose_threads(planned: int | None, of_user: int | None, default: int, rates: Mapping[int, float]) -> ThreadChoice:
    """Choose the number of threads: the plan's, the user's, or that with which earlier runs were clearly fastest.

    Args:
        planned: The plan's number; ``None`` for ``auto``.
        of_user: The number in the user's environment; ``None`` without one.
        default: TensorFlow's own number.
        rates: Steps per second of earlier runs by number of threads.
    """
    if planned is not None:
        return ThreadChoice(planned, default, ThreadSource.PLAN)
    if of_user is not None:
        return ThreadChoice(of_user, default, ThreadSource.ENVIRONMENT)
    if default in rates:
        best = max(rates, key=rates.__getitem__)
        if best != default and rates[best] / rates[default] >= APART:
            return ThreadChoice(best, default, ThreadSource.EARLIER_RUNS, rates[best], rates[default])
    return ThreadChoice(default, default, ThreadSource.TENSORFLOW)


_RATES = Cache[float]("threads", Rate)
"""Steps per second, by the number of threads and :func:`rates_key`."""

WINDOW_SECONDS = 1.0
"""Steps of this many seconds give a rate."""


class RunThreads:
    """Chooses the number of threads, and remembers how fast the run is with it.

    Runs of several processes and on other devices than CPUs use the plan's or the environment's number, and are not
    remembered.

    Args:
        resolved: The plan, with its devices.
        inventory: The machine's devices.
        reporter: Writes events.

    Attributes:
        choice: The number and where it comes from.
    """

    def __init__(self, resolved: ResolvedPlan, inventory: Inventory, reporter: RunReporter) -> None:
        self._reporter = reporter
        devices = resolved.placement.devices if resolved.placement else ()
        self._on_cpu = all(name.startswith("cpu") for name in devices)
        self._key = rates_key(resolved, inventory) if self._on_cpu and resolved.cluster is None else ""
        is_fixed = resolved.plan.deterministic == "on"  # sums may depend on the number
        rates = load_rates(self._key) if self._key and not is_fixed else {}
        self.choice = choose_threads(resolved.plan.threads, threads_of_user(), processors(), rates)
        self._rate = SettledRate()
        self._saved = 0.0

    def report(self) -> None:
        """Write an event if the number is not TensorFlow's own."""
        choice = self.choice
        if self._on_cpu and choice.count != choice.default:
            self._reporter.emit(
                ThreadsChosen,
                threads=choice.count,
                default=choice.default,
                source=choice.source.value,
                rate=choice.rate,
                default_rate=choice.default_rate,
            )

    def observe(self, chunk: ChunkResult, mode: ExecutionMode) -> None:
        """Take note of a chunk of full batches in the mode that the run has chosen, and remember a settled rate.

        It is remembered again if it is clearly higher later: what slowed the run down before has ended.
        """
        if not self._key:
            return
        self._rate.add(chunk, mode)
        rate = self._rate.value
        if rate is None or rate < APART * self._saved:
            return
        if self.choice.source is ThreadSource.EARLIER_RUNS and rate < self.choice.default_rate:
            self._forget(rate)
        else:
            self._saved = rate
            save_rate(self._key, self.choice.count, rate)

    def _forget(self, rate: float) -> None:
        """Forget the choice, as the run is slower than an earlier one with TensorFlow's own number."""
        choice = self.choice
        forget_rate(self._key, choice.count)
        self._key = ""
        message = (
            f"--threads {choice.count} is no longer chosen by itself: {rate:.3g} steps/s, "
            f"but {choice.default_rate:.3g} in an earlier run with {choice.default}"
        )
        self._reporter.emit(Warned, message=message, severity="information")


class SettledRate:
    """Finds steps per second in one execution mode, without the first chunk, a warm-up."""

    def __init__(self) -> None:
        self._mode: ExecutionMode | None = None
        self._rates: deque[float] = deque(maxlen=LAST)
        self._window = ChunkRate()

    def add(self, chunk: ChunkResult, mode: ExecutionMode) -> None:
        """Add a chunk of full batches; begins anew if its mode differs from the last chunk's."""
        if mode != self._mode:
            self._mode = mode
            self._rates.clear()
            self._window = ChunkRate()
            return
        self._window.add(chunk)
        if self._window.seconds >= WINDOW_SECONDS:
            self._rates.append(self._window.value)
            self._window = ChunkRate()

    @property
    def value(self) -> float | None:
        """The median of the latest windows; ``None`` while there are too few or they disagree."""
        if len(self._rates) < LAST or deviation(self._rates) > TOLERANCE:
            return None
        return statistics.median(self._rates)


def load_rates(key: str) -> dict[int, float]:
    """Steps per second of earlier runs by number of threads."""
    found = ((name.partition(" "), each.value) for name, each in _RATES.all().items())
    return {int(count): rate for (count, _, rest), rate in found if rest == key and count.isdecimal()}


def save_rate(key: str, threads: int, rate: float) -> None:
    """Remember the rate of a run.

    A rate that is clearly lower than an earlier run's is not: other programs may slow a run down, but never make it
    faster.
    """
    earlier = load_rates(key).get(threads)
    if earlier is None or earlier < APART * rate:
        _RATES.save({f"{threads} {key}": rate})


def forget_rate(key: str, threads: int) -> None:
    """Forget the rate of runs with a number of threads."""
    _RATES.save({}, forgotten=[f"{threads} {key}"])


def rates_key(resolved: ResolvedPlan, inventory: Inventory) -> str:
    """Everything that the rate of a run depends on and that is known before TensorFlow starts, as JSON."""
    plan = {name: value for name, value in resolved.plan.to_mapping().items() if name != "threads"}
    modified = resolved.model.modified if isinstance(resolved.model, UserModel) else None
    return key_of([device.name for device in inventory.of_kind("cpu")], plan, modified=modified)
