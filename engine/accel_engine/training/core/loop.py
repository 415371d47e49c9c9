"""Runs training steps in compiled chunks: many steps per dispatch, with the metrics of every step.

A Python loop costs a dispatch and a host round trip per step; ``fit`` with ``steps_per_execution`` costs less, but
hides the steps. Here k steps run inside one ``tf.function``, which returns the metrics of each, ``[k, series]``. k is
a tensor, so it can change without retracing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock
from accel_engine.keras_support.optimizers import has_constant_rate, read_rate
from accel_engine.run.series_names import LEARNING_RATE
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.step import step_of, with_rate
from accel_engine.training.cpu_kernels.layer_kernels import use_fast_kernels
from accel_engine.training.model_analysis import layer_table

CHUNK_SECONDS = 0.05
"""Target duration of a chunk: short enough for live charts and a quick stop, long enough to keep a device busy."""

SHARED_CHUNK_SECONDS = 4 * CHUNK_SECONDS
"""The same with other workers, which synchronize before every chunk."""

MAX_STEPS = 4096
"""The most steps of a chunk."""


@dataclass(frozen=True, slots=True)
class ExecutionMode:
    """How steps are compiled and split.

    Attributes:
        xla: Whether XLA compiles the step.
        micro_batches: Number of micro-batches of each replica's batch.
    """

    xla: bool = False
    micro_batches: int = 1


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The metrics of a chunk of steps.

    Attributes:
        count: Number of steps.
        started: Seconds since the Unix epoch.
        seconds: Duration of the chunk.
        series: float32 arrays ``[count]`` by name.
    """

    count: int
    started: float
    seconds: float
    series: dict[str, npt.NDArray[np.float32]]


class ChunkSize:
    """Adapts the number of steps per chunk to the duration of a step."""

    def __init__(self, target: float = CHUNK_SECONDS, minimum: int = 1) -> None:
        self._target = target
        self._minimum = minimum
        self.steps = minimum

    def update(self, count: int, seconds: float) -> None:
        """Adapt to the duration of a chunk; grows at most fourfold, so that one quick chunk has little effect."""
        wanted = int(self._target / max(seconds / count, 1e-9))
        self.steps = max(self._minimum, min(wanted, 4 * self.steps, MAX_STEPS))


class Loop:
    """Runs the training steps of one assembly.

    Args:
        assembly: Model, data and strategy.
        mode: The execution mode.
        sync_count: Returns the number of steps of the next chunk that all workers use.
    """

    def __init__(self, assembly: Assembly, mode: ExecutionMode, *, sync_count: Callable[[int], int] = int) -> None:
        self.mode = mode
        self._sync_count = sync_count
        self._assembly = assembly
        self._strategy = assembly.strategy
        self._feed = assembly.feed
        self._size = ChunkSize(
            CHUNK_SECONDS if assembly.single_process else SHARED_CHUNK_SECONDS, minimum=assembly.simultaneous_steps
        )
        self._names: tuple[str, ...] = ()
        step, optimizer = step_of(assembly, mode.micro_batches), assembly.optimizer
        # Only a custom train_step could change the rate within a chunk.
        constant = optimizer is not None and has_constant_rate(optimizer) and not assembly.has_custom_train_step
        self._constant_rate_of = optimizer if constant else None
        if optimizer is not None and not constant:
            step = with_rate(step, optimizer)
        # TPUStrategy compiles the whole step anyway.
        self._step = graph_of(step, assembly, jit_compile=True) if mode.xla and not assembly.on_tpu else step
        self._chunk = graph_of(self._run_chunk, assembly)

    def trace(self, order: npt.NDArray[np.int32]) -> tf.Graph:
        """Trace the graph of a chunk ahead of the first chunk, and return it."""
        zero = tf.constant(0)
        return self._chunk.get_concrete_function(self._feed.open(order), zero, zero).graph

    def run(self, order: npt.NDArray[np.int32], first: int = 0) -> Iterator[ChunkResult]:
        """Run the steps of an order; yields after each chunk.

        Args:
            order: Row numbers, int32 ``[steps, replicas, per_replica_batch]``.
            first: The step to start with.
        """
        source = self._feed.open(order, first)
        done = first
        while done < len(order):
            count = self._sync_count(min(self._size.steps, len(order) - done))
            started, begin = clock.now(), time.perf_counter()
            values = self._run_steps(source, done, count)
            seconds = time.perf_counter() - begin
            self._size.update(count, seconds)
            done += count
            yield ChunkResult(count, started, seconds, dict(zip(self._names, values.T, strict=True)))

    @property
    def is_idle(self) -> bool:
        """Whether no step is running, so that weights may be read and changed."""
        return True

    def measure_rate(self, order: npt.NDArray[np.int32], seconds: float) -> float:
        """Run steps for about ``seconds`` and return steps per second, without the first chunk, a warm-up."""
        count, spent, warm = 0, 0.0, False
        while spent < seconds:
            for chunk in self.run(order):
                if warm:
                    count += chunk.count
                    spent += chunk.seconds
                warm = True
                if spent >= seconds:
                    break
        return count / spent

    def _run_steps(self, source: Any, first: int, count: int) -> npt.NDArray[np.float32]:
        """Run ``count`` steps from step ``first``; returns their metrics, ``[count, series]``."""
        values: npt.NDArray[np.float32] = self._chunk(source, tf.constant(first), tf.constant(count)).numpy()
        return values

    def _run_chunk(self, source: Any, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        series = self._take_steps(source, first, count)
        # One reduction over workers per chunk, not per step.
        return series if self._assembly.single_process else mean_of_workers(self._strategy, series)

    def _take_steps(self, source: Any, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """The metrics of ``count`` steps, the mean of this worker's replicas, ``[count, series]``."""

        def take(index: tf.Tensor, measured: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            values = self._strategy.run(self._replica_step, args=self._feed.arguments(source, first + index))
            local = self._strategy.experimental_local_results(values)
            return index + 1, measured.write(index, tf.add_n(local) / len(local))

        empty = tf.TensorArray(tf.float32, size=count)
        # mark_layers comes last, so that it also marks the replaced kernels.
        model = self._assembly.model
        uses_kernels = self._assembly.uses_cpu_kernels and not self.mode.xla  # XLA has its own
        with use_fast_kernels(model) if uses_kernels else nullcontext(), layer_table.mark_layers(model):
            _, measured = tf.while_loop(lambda index, _: index < count, take, (tf.constant(0), empty))
        series = measured.stack()
        if self._constant_rate_of is None:
            return series
        self._names = (*self._names, LEARNING_RATE)
        rate = read_rate(self._constant_rate_of)  # per chunk: reading it at each step would cost time
        return tf.concat([series, tf.fill([count, 1], rate)], axis=1)

    def _replica_step(self, *arguments: Any) -> tf.Tensor:
        logs = self._step(*self._feed.examples(*arguments))
        # Python runs here once per trace.
        self._names = tuple(logs)
        return tf.stack([tf.cast(value, tf.float32) for value in logs.values()])


def graph_of(function: Callable[..., Any], assembly: Assembly, **options: Any) -> Any:
    """Wrap a function in ``tf.function``.

    Without AutoGraph, which takes three quarters of the time of tracing, unless a custom ``train_step`` or
    ``test_step`` may need it.
    """
    return tf.function(function, autograph=assembly.has_custom_train_step, **options)


def mean_of_workers(strategy: tf.distribute.Strategy, values: tf.Tensor) -> tf.Tensor:
    """The mean of a tensor over all workers; call it in a graph that all of them run."""
    return strategy.reduce("MEAN", strategy.run(tf.identity, args=(values,)), axis=None)
