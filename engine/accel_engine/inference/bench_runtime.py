"""Measures a runtime: batch size by batch size, in one of MLPerf's scenarios; without TensorFlow."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import cycle

import numpy as np

from accel_engine import clock
from accel_engine.data.structure import ArraySpec
from accel_engine.devices.energy_meter import IntervalMeter
from accel_engine.errors import ModelError
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_engine.inference.measurement.rate_search import FEWEST_REQUESTS, HighestRate, highest_rate, serve_at
from accel_engine.inference.measurement.stability import ClosedLoop, Measured, ignore_windows, measure
from accel_engine.inference.measurement.window import SECOND, TOLERANCE, SystemTimer, Timer, Window
from accel_engine.inference.runtime import Arrays, Runtime
from accel_engine.words import numbers

PATIENCE = 2
"""Batch sizes in a row whose throughput has not grown, after which larger ones are left out."""

LARGEST = 1 << 16
"""The largest batch size that is measured unasked."""


class NoMeter:
    """Measures nothing: it stands for a device that tells no values."""

    def start(self) -> None:
        """See :class:`accel_engine.devices.energy_meter.IntervalMeter`."""

    def stop(self) -> None:
        """See :class:`accel_engine.devices.energy_meter.IntervalMeter`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """How a runtime is measured."""

    scenario: str
    """One of :data:`accel_engine.inference.candidate.SCENARIOS`."""
    batch_sizes: Sequence[int] | None
    """What is measured; ``None`` for 1, 2, 4 and so on until the throughput stops growing."""
    seconds: float
    """Time limit of a measurement."""
    target_latency: float | None
    """Seconds that the 99th percentile may be at most; ``None`` for any. The scenario server needs it."""
    seed: int = 0
    """Seed of the arrivals."""
    on_live: Callable[[LiveWindow], object] | None = None
    """Called with what has been measured so far, when a window has ended and before the next one begins; in the
    scenario server, when a rate has been measured."""


class RuntimeBench:
    """Measures a runtime.

    Args:
        setup: Describes it.
        runtime: The runtime.
        examples: An array for each input, ``[examples, ...]``.
        settings: How it is measured.
        memory: Measures bytes.
        energy: Measures joules.
        available: Returns the bytes of memory that are left, where ``memory`` measures the same memory.
        timer: The clock.
    """

    def __init__(
        self,
        setup: Setup,
        runtime: Runtime,
        examples: Arrays,
        settings: BenchSettings,
        memory: IntervalMeter | None = None,
        energy: IntervalMeter | None = None,
        available: Callable[[], float] = lambda: math.inf,
        timer: Timer | None = None,
    ) -> None:
        self._setup = setup
        self._runtime = runtime
        self._examples = examples
        self._settings = settings
        self._memory = memory or NoMeter()
        self._energy = energy or NoMeter()
        self._available = available
        self._timer = timer or SystemTimer()
        self._taken: list[tuple[int, float]] = []

    def candidates(self) -> Iterator[Candidate]:
        """Measure the batch sizes; ends with one that fails, as larger ones would."""
        settings = self._settings
        sizes = (1,) if settings.scenario == "single-stream" else settings.batch_sizes
        if sizes is None:
            yield from self._growing()
            return
        for size in sizes:
            candidate = self._candidate(size)
            yield candidate
            if candidate.problem:
                return

    def _growing(self) -> Iterator[Candidate]:
        """Measure the batch sizes 1, 2, 4 and so on, until the throughput stops growing, or the latency is too long."""
        target, best, without, size = self._settings.target_latency, 0.0, 0, 1
        while without < PATIENCE and size <= LARGEST:
            found = self._candidate(size)
            yield found
            p50 = found.percentiles.get("p50")
            if not found.throughput or (target and p50 and p50.value > target):
                return
            without = 0 if found.throughput > (1 + TOLERANCE) * best else without + 1
            best, size = max(best, found.throughput), 2 * size

    def _candidate(self, size: int) -> Candidate:
        described = asdict(self._setup) | {
            "scenario": self._settings.scenario,
            "batch_size": size,
            "began": clock.now(),
        }
        try:
            self._check_memory(size)
            batches = batches_of(self._examples, size)
            self._memory.start()
            first_seconds = self._first(batches[0])
            measured = self._server(size) if self._settings.scenario == "server" else self._closed(batches, size)
        except (ModelError, MemoryError) as error:
            return Candidate(**described, problem=str(error) or "out of memory")
        memory = self._memory.stop()
        self._taken = [*self._taken[-1:], *([] if memory is None else [(size, memory)])]
        found, rate, energy = measured
        figures = {each.name: getattr(found, each.name) for each in fields(Measured) if each.name != "is_complete"}
        figures["throughput"] = rate
        return Candidate(
            **described,
            **figures,
            first_seconds=first_seconds,
            memory=None if memory is None else round(memory),
            energy=energy,
        )

    def _check_memory(self, size: int) -> None:
        """Raise before a batch that would not fit in the host's memory, where the system would kill the process.

        Raises:
            ModelError: The batch takes more than is available, by the growth between the two sizes before.
        """
        if len(self._taken) < 2:
            return
        (small, before), (large, last) = self._taken
        more = (last - before) / (large - small) * (size - large) if large > small else 0.0
        left = self._available()
        if more > left:
            raise ModelError(f"it would take about {numbers.size(more)} more memory, and {numbers.size(left)} are left")

    def _first(self, batch: Arrays) -> float:
        """Seconds of the first request, in which a model is traced and compiled."""
        start = self._timer.now()
        self._runtime.run(batch)
        return (self._timer.now() - start) / SECOND

    def _closed(self, batches: Sequence[Arrays], size: int) -> tuple[Measured, float, float | None]:
        """Measure requests one after the other; returns the measurements, the throughput, and joules per example."""
        loop = ClosedLoop(
            self._runtime.run, batches, size, timer=self._timer, keeps_latencies=self._settings.scenario != "offline"
        )
        self._energy.start()
        found = measure(loop, self._settings.seconds, timer=self._timer, on_window=self._watch(size))
        joules = self._energy.stop()
        examples = size * (found.requests + found.warm_up_requests)
        return found, found.throughput, None if joules is None else joules / examples

    def _watch(self, size: int, rate: float = 0.0) -> Callable[[Sequence[Window]], object]:
        """Tells what has been measured of a batch size, in the scenario server at a rate, if anybody watches."""
        on_live = self._settings.on_live
        if on_live is None:
            return ignore_windows
        return lambda windows: on_live(LiveWindow.of(self._setup.title, size, windows, rate))

    def _server(self, size: int) -> tuple[Measured, float, float | None]:
        """Find the highest rate within the bound; returns its measurements and the rate."""
        settings = self._settings
        assert settings.target_latency is not None  # noqa: S101 (which the command checks)
        serve = self._serve_up_to(size)
        offline = ClosedLoop(
            self._runtime.run, batches_of(self._examples, size), size, timer=self._timer, keeps_latencies=False
        )
        capacity = measure(offline, settings.seconds, timer=self._timer).throughput
        try_rate = partial(
            serve_at,
            serve=serve,
            largest_batch=size,
            bound=settings.target_latency,
            seconds=settings.seconds,
            timer=self._timer,
            seed=settings.seed,
        )
        lowest = FEWEST_REQUESTS / settings.seconds
        found: HighestRate = highest_rate(
            lambda rate: try_rate(rate, on_window=self._watch(size, rate)), capacity, settings.target_latency, lowest
        )
        return found.measured, found.rate, None

    def _serve_up_to(self, largest: int) -> Callable[[int], object]:
        """Serves requests as the smallest batch they fit in, of 1, 2, 4 and so on, filled up with other examples.

        So few programs are compiled, all of them here. TensorFlow Serving does the same with ``allowed_batch_sizes``.
        """
        sizes = sorted({*(1 << power for power in range(largest.bit_length())), largest})
        batches = {size: cycle(batches_of(self._examples, size)) for size in sizes}
        padded = [next(size for size in sizes if size >= count) for count in range(largest + 1)]
        run = self._runtime.run
        for size in sizes:
            run(next(batches[size]))
        return lambda count: run(next(batches[padded[count]]))


MAX_BATCHES = 8
"""Different batches of a size at most, so that not the same bytes are read from the caches each time."""

MAX_BYTES = 1 << 28
"""Bytes of all batches of a size at most; but there is always one batch."""

EXAMPLES = 256
"""Random examples."""


def batches_of(examples: Arrays, size: int) -> list[dict[str, np.ndarray]]:
    """Different batches of some examples, which are repeated where there are too few.

    Args:
        examples: An array for each input, ``[examples, ...]``.
        size: Examples of a batch.
    """
    count = len(next(iter(examples.values())))
    nbytes = sum(array[:1].nbytes for array in examples.values()) * size
    number = max(1, min(MAX_BATCHES, MAX_BYTES // max(nbytes, 1), -(-count // size)))
    rows = [np.arange(first * size, (first + 1) * size) % count for first in range(number)]
    return [{name: array[chosen] for name, array in examples.items()} for chosen in rows]


def random_examples(specs: Mapping[str, ArraySpec], seed: int = 0) -> dict[str, np.ndarray]:
    """Random examples of a model's inputs: floats between 0 and 1, whole numbers 0 and 1, the texts ``0`` and ``1``.

    Larger numbers may be no token of the model, or no class.

    Args:
        specs: The specs of the inputs.
        seed: Of the random numbers.

    Raises:
        ModelError: An input has a dimension of any size.
    """
    draws = np.random.default_rng(seed)
    return {name: _random(name, spec, draws) for name, spec in specs.items()}


def _random(name: str, spec: ArraySpec, draws: np.random.Generator) -> np.ndarray:
    sides: Sequence[int | None] = spec.shape
    if None in sides:
        raise ModelError(f"input {name} has a dimension of any size ({spec}): give examples with --data")
    shape = (EXAMPLES, *(side for side in sides if side is not None))
    if spec.dtype == "string":
        return draws.integers(0, 2, shape).astype(str).astype(object)
    if spec.dtype.startswith(("float", "bfloat")):
        return draws.random(shape, np.float32).astype("float32" if spec.dtype == "bfloat16" else spec.dtype)
    return draws.integers(0, 2, shape).astype(spec.dtype)
