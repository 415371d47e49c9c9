"""Chooses how TensorFlow Serving batches requests to a SavedModel, from measurements of it.

Source: ``BatchingParameters`` of ``session_bundle_config.proto``, and the batching guide of TensorFlow Serving.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.devices.energy_meter import IntervalMeter
from accel_engine.errors import ModelError
from accel_engine.formats import BATCHING_FILE
from accel_engine.inference.bench_runtime import BenchSettings, RuntimeBench
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.measurement.window import TOLERANCE
from accel_engine.inference.runtime import Arrays, Runtime

SECONDS = 0.3
"""Time limit of each measurement."""

OURS = "# Written by accel-tui, which overwrites this file for the next version: remove this line to keep your changes."
"""The first line of the file."""

QUEUE_SECONDS = 1.0
"""How long the last request in a full queue waits where no latency is wanted."""

Parallel = tuple[int, Candidate]
"""A number of batches computed at once, and what was measured of them; the throughput is of one."""


@dataclass(frozen=True, slots=True)
class Batching:
    """The fields of ``BatchingParameters`` that are set."""

    max_batch_size: int
    """Examples of a batch at most."""
    batch_timeout_micros: int
    """Microseconds that a request waits for others at most, while a thread is free."""
    max_enqueued_batches: int
    """Batches that wait at most; further requests are refused."""
    num_batch_threads: int
    """Batches that are computed at once."""
    allowed_batch_sizes: tuple[int, ...]
    """Sizes that batches are filled up to, the last one ``max_batch_size``."""

    def to_text(self, comments: Iterable[str]) -> str:
        """The file, in the text format of protocol buffers.

        Args:
            comments: Lines about it.
        """
        wrapped = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
        lines = [f"{name} {{ value: {getattr(self, name)} }}" for name in wrapped]
        sizes = [f"allowed_batch_sizes: {size}" for size in self.allowed_batch_sizes]
        return "\n".join((OURS, *(f"# {' '.join(line.splitlines())}" for line in comments), *lines, *sizes)) + "\n"


def write_batching(
    path: Path,
    name: str,
    runtime: Runtime,
    examples: Arrays,
    target_latency: float | None,
    cores: int,
    memory: IntervalMeter,
    available: Callable[[], float],
) -> None:
    """Measure a SavedModel, and write the file.

    Args:
        path: The file.
        name: The run's id.
        runtime: Runs the SavedModel.
        examples: An array for each input, ``[examples, ...]``.
        target_latency: Seconds that a request may take; ``None`` for any.
        cores: Cores of the processor.
        memory: Measures bytes.
        available: Returns the bytes of memory that are left.

    Raises:
        ModelError: The model cannot be measured, is too slow, or batches are no faster than single examples.
    """
    setup = Setup(model=name, format=runtime.name, device="cpu:0", xla=False)

    def bench(runtime: Runtime, sizes: Sequence[int] | None) -> list[Candidate]:
        limit = None if target_latency is None else target_latency / 2
        settings = BenchSettings(
            scenario="multi-stream", batch_sizes=sizes, seconds=SECONDS, target_latency=limit, seed=0
        )
        return list(RuntimeBench(setup, runtime, examples, settings, memory, available=available).candidates())

    by_size = bench(runtime, None)
    size = best_size(by_size, target_latency)
    with ThreadPoolExecutor(cores) as pool:
        by_threads = [
            (threads, bench(_ConcurrentRuntime(runtime, threads, pool), (size,))[0])
            for threads in _thread_counts(cores)
        ]
    batching = choose_batching(by_size, by_threads, size, target_latency)
    path.write_text(batching.to_text(_comments(name, by_size, by_threads, target_latency, cores)), "utf-8")


def is_ours(path: Path) -> bool:
    """Whether a file has the mark of this program, and may be overwritten.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return file.readline().rstrip() == OURS.encode()


def best_size(by_size: Sequence[Candidate], target_latency: float | None) -> int:
    """The smallest batch size whose throughput is within 5% of the best.

    Raises:
        ModelError: No batch size fits, or the best one is 1.
    """
    measured = [each for each in by_size if not each.problem]
    if not measured:
        raise ModelError(by_size[0].problem)
    fits = [each for each in measured if _is_in_time(each, target_latency)]
    if not fits:
        p99 = measured[0].percentiles["p99"].value
        raise ModelError(f"a single example takes {p99 * 1000:.3g} ms at p99, more than half of the target latency")
    best = max(each.throughput for each in fits)
    size = next(each.batch_size for each in fits if each.throughput * (1 + TOLERANCE) >= best)
    if size == 1:
        raise ModelError("batches are not faster than single examples: serve it without --enable_batching")
    return size


def _is_in_time(candidate: Candidate, target_latency: float | None) -> bool:
    """Whether p99 is at most half of the target: a request may wait for the batch before its own."""
    return target_latency is None or candidate.percentiles["p99"].value <= target_latency / 2


def choose_batching(
    by_size: Sequence[Candidate], by_threads: Sequence[Parallel], size: int, target_latency: float | None
) -> Batching:
    """Choose the parameters.

    Args:
        by_size: What was measured of batch sizes, from 1.
        by_threads: What was measured of batches of ``size``, from one at once.
        size: The largest batch.
        target_latency: Seconds that a request may take; ``None`` for any.

    Raises:
        ModelError: Not even one batch at once could be measured.
    """
    measured = [(threads, found) for threads, found in by_threads if not found.problem]
    if not measured:
        raise ModelError(by_threads[0][1].problem)
    fits = [each for each in measured if _is_in_time(each[1], target_latency)] or measured[:1]
    best = max(threads * found.throughput for threads, found in fits)
    threads, found = next(each for each in fits if each[0] * each[1].throughput * (1 + TOLERANCE) >= best)
    lone, batch = by_size[0].percentiles["p50"].value, found.percentiles["p99"].value
    if target_latency is None:
        timeout, queue = lone, threads * QUEUE_SECONDS / batch
    else:
        timeout = max(0.0, min(lone, target_latency - 2 * batch))
        queue = threads * (target_latency - timeout - batch) / batch
    allowed = tuple(each.batch_size for each in by_size if each.batch_size <= size)
    return Batching(size, math.floor(timeout * 1e6), max(threads, math.floor(queue)), threads, allowed)


class _ConcurrentRuntime:
    """A runtime that computes a batch several times at once; see :class:`accel_engine.inference.runtime.Runtime`."""

    def __init__(self, runtime: Runtime, threads: int, pool: Executor) -> None:
        self.name, self.inputs, self.outputs, self.size = runtime.name, runtime.inputs, runtime.outputs, runtime.size
        self._runtime = runtime
        self._threads = threads
        self._pool = pool

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        return list(self._pool.map(self._runtime.run, [inputs] * self._threads))[-1]


def _thread_counts(cores: int) -> list[int]:
    """The numbers 1, 2, 4 and so on, and all cores."""
    return sorted({*(1 << power for power in range(cores.bit_length())), cores})


def _comments(
    name: str, by_size: Sequence[Candidate], by_threads: Sequence[Parallel], target_latency: float | None, cores: int
) -> Iterable[str]:
    yield f"tensorflow_model_server --enable_batching --batching_parameters_file={BATCHING_FILE} ..."
    within = "" if target_latency is None else f", for a latency of at most {target_latency * 1000:g} ms"
    yield f"Chosen from measurements of {name} on {cores} CPU cores{within}:"
    for each in by_size:
        yield f"  batch {each.batch_size}: {_figures(each, 1)}"
    for threads, each in by_threads:
        yield f"  {threads} at once of batch {each.batch_size}: {_figures(each, threads)}"


def _figures(candidate: Candidate, times: int) -> str:
    if candidate.problem:
        return candidate.problem
    p50, p99 = (candidate.percentiles[name].value * 1000 for name in ("p50", "p99"))
    return f"{times * candidate.throughput:,.0f} examples/s, p50 {p50:.3g} ms, p99 {p99:.3g} ms"
