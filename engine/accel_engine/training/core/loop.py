"""Runs training steps in compiled chunks: many steps per dispatch, with the metrics of every step.

A Python loop costs a dispatch and a host round trip per step; ``fit`` with ``steps_per_execution`` costs less, but
hides the steps. Here k steps run inside one ``tf.function``, which returns the metrics of each, ``[k, series]``. k is
a tensor, so it can change without retracing. With XLA, the whole chunk is one program where that is possible: see
:mod:`accel_engine.training.core.compiled_chunk`.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock
from accel_engine.data.structure import Batch, flatten
from accel_engine.keras_support.optimizers import has_constant_rate, read_rate
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.compiled_chunk import (
    CHUNK_SECONDS,
    MAX_STEPS,
    SHARED_CHUNK_SECONDS,
    ChunkProgram,
    ChunkSize,
    CompiledChunk,
    UnpreparedDraws,
    compiles_chunks,
    largest_chunk,
    without_cudnn,
)
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.metric_states import pack_states
from accel_engine.training.core.rematerialization.parts import run_in_parts
from accel_engine.training.core.rematerialization.recomputation import Tracing
from accel_engine.training.core.step import graph_of, step_of
from accel_engine.training.core.uneven_batches import UnevenBatch, uneven_batch
from accel_engine.training.layer_kernels import kernels_for, use_fast_kernels
from accel_engine.training.model_analysis import layer_table
from accel_engine.training.update_kernels import use_fast_updates

CHUNKS_AHEAD = 2
"""Chunks scheduled at a time, so that no device waits for this process."""


@dataclass(frozen=True, slots=True)
class ExecutionMode:
    """How steps are compiled and split."""

    xla: bool = False
    """Whether XLA compiles the steps."""
    micro_batches: int = 1
    """Number of micro-batches of each replica's batch."""


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The metrics of a chunk of steps."""

    count: int
    """Number of steps."""
    started: float
    """Seconds since the Unix epoch."""
    seconds: float
    """Duration of the chunk."""
    series: dict[str, npt.NDArray[np.float32]]
    """float32 arrays ``[count]`` by name; the metrics are of each step's own batch."""
    examples: int
    """Examples of each step, over all replicas."""
    states: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """The states of all metrics of each step, float32 ``[count, states]``; their sum is for :meth:`Loop.metrics`."""

    def with_wait(self, seconds: float) -> Self:
        """The chunk, with the time in which its batches were waited for."""
        return replace(self, started=self.started - seconds, seconds=self.seconds + seconds)

    def divided(self, counts: Sequence[int]) -> list[Self]:
        """The chunk in parts of some steps each, whose durations are in proportion to them."""
        if len(counts) == 1:
            return [self]
        each, ends = self.seconds / self.count, np.cumsum(counts).tolist()
        return [
            replace(
                self,
                count=count,
                started=self.started + each * (end - count),
                seconds=each * count,
                series={name: values[end - count : end] for name, values in self.series.items()},
                states=self.states[end - count : end],
            )
            for count, end in zip(counts, ends, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that is scheduled, and may be running."""

    count: int
    """Number of steps."""
    scheduled_at: float
    """When it was scheduled, by ``time.perf_counter()``."""
    result: Any
    """Gives its rows."""


@dataclass(frozen=True, slots=True)
class _TracedChunk:
    """The graph of a chunk."""

    function: Any
    """Takes a source, its first step and the number of steps; gives the series, ``[steps, series]``."""
    size: int
    """The most steps."""


class Loop:
    """Runs the training steps of one assembly.

    Args:
        assembly: Model, data and strategy.
        mode: The execution mode.
        rate: Steps per second of another mode, for the size of compiled chunks; 0 if it is unknown.
        sync_count: Returns the number of steps of the next chunk that all workers use.
        must_wait: Whether no chunk may be scheduled while another one is running, as something is due between them;
            always by default.
    """

    def __init__(
        self,
        assembly: Assembly,
        mode: ExecutionMode,
        *,
        rate: float = 0.0,
        sync_count: Callable[[int], int] = int,
        must_wait: Callable[[], bool] | None = None,
    ) -> None:
        self.mode = mode
        self._sync_count, self._must_wait = sync_count, must_wait
        self._ahead = CHUNKS_AHEAD if must_wait and schedules_ahead(assembly) else 1
        self._dispatcher = ThreadPoolExecutor(1, "steps") if self._ahead > 1 and not assembly.coordinated else None
        self._assembly = assembly
        self._strategy = assembly.strategy
        self._feed = assembly.feed
        self._size = ChunkSize(
            CHUNK_SECONDS if assembly.single_process else SHARED_CHUNK_SECONDS, minimum=assembly.simultaneous_steps
        )
        self._series: tuple[str, ...] = ()
        self._width = 0
        self._step = step_of(assembly, mode.micro_batches)
        optimizer = assembly.optimizer
        # Only a custom train_step could change the rate within a chunk.
        constant = optimizer is not None and has_constant_rate(optimizer) and not assembly.has_custom_train_step
        self._constant_rate_of = optimizer if constant else None
        self._rate_of = None if constant else optimizer
        self._has_rate = optimizer is not None
        # One replica's sums are the sums of all: its series are computed with the step.
        self._alone = assembly.replicas == 1
        self._sums_over_workers = not (self._alone or assembly.single_process or assembly.coordinated)
        self._worker_count = len(assembly.cluster.workers) if assembly.cluster else 1
        self._compiled = None
        if mode.xla and compiles_chunks(assembly):
            self._compiled = CompiledChunk(assembly, self._take_compiled_step, largest_chunk(rate, assembly.on_cpu))
        self._chunk = graph_of(self._run_chunk, assembly)
        self._traced: dict[Any, _TracedChunk] = {}
        self._shapes: set[Any] = set()
        self._tracing_seconds = 0.0
        self._pending: deque[PendingChunk] = deque()

    def in_mode(self, mode: ExecutionMode, rate: float) -> "Loop":
        """A loop of the same steps in another mode, given the steps per second of this one."""
        return Loop(self._assembly, mode, rate=rate, sync_count=self._sync_count, must_wait=self._must_wait)

    def trace(self, segment: Segment) -> tf.Graph:
        """Trace the graph of a chunk ahead of the first chunk, and return it."""
        return self._chunk_for(self._feed.open(segment.order), segment.examples).function.graph

    def compile(self, segment: Segment) -> None:
        """Trace and compile a chunk without taking a step; another loop may take steps at the same time.

        XLA compiles a function only by running it: here with no steps. Its loop then leaves all variables as they are.
        A single step that is compiled by itself is not compiled yet.

        Raises:
            UnpreparedDraws: The steps would have other random numbers, which the plan does not ask for.
        """
        source, zero = self._feed.open(segment.order), tf.constant(0)
        self._chunk_for(source, segment.examples).function(source, zero, zero).numpy()
        self._shapes.add(_shapes(segment))

    @property
    def graphs(self) -> list[tf.Graph]:
        """The graphs of chunks that are traced."""
        return [chunk.function.graph for chunk in self._traced.values()]

    @property
    def compiles_chunks(self) -> bool:
        """Whether XLA compiles whole chunks, where it can."""
        return self._compiled is not None

    def is_traced_for(self, segment: Segment) -> bool:
        """Whether a chunk of a segment needs no further tracing."""
        return _shapes(segment) in self._shapes

    @property
    def chunk_steps(self) -> int:
        """Number of steps of the next chunk."""
        return self._size.steps

    def run(
        self, segment: Segment, first: int, last: Callable[[int], int] | None = None
    ) -> Generator[ChunkResult, None, None]:
        """Run the steps of a segment; yields after each chunk, while the next one may be running.

        Close it, unless it has ended: that waits for what is running.

        Args:
            segment: The steps.
            first: The step to start with.
            last: From the position of the next chunk to the position where chunks have to end, as something is due
                there; the generator ends if both are equal. By default the number of steps. Of several workers, the
                chief's counts.
        """
        try:
            yield from self._chunks(segment, first, last or (lambda _: segment.steps))
        finally:
            while self._pending:
                self._abandon(self._pending.popleft().result)

    def _chunks(self, segment: Segment, first: int, last: Callable[[int], int]) -> Iterator[ChunkResult]:
        schedule = self._scheduler(segment, first)
        position, end, ended = first, first, 0.0
        while True:
            until = last(position)
            end = until if self.is_idle else min(end, until)  # what is due comes after all chunks before it
            while position < end and self._may_schedule:
                self._pending.append(schedule(position, end - position))
                position += self._pending[-1].count
            if self.is_idle:
                return
            chunk = self._pending.popleft()
            values = self._fetch(chunk.result)
            # It began when it was scheduled, or when the chunk before it ended.
            began, ended = max(ended, chunk.scheduled_at), time.perf_counter()
            seconds = ended - began
            self._size.update(chunk.count, seconds)
            series, states = self._named(values), self._states_of(values)
            yield ChunkResult(chunk.count, clock.now() - seconds, seconds, series, segment.examples, states)

    def _scheduler(self, segment: Segment, first: int) -> Callable[[int, int], PendingChunk]:
        """Open a segment at a step; returns a function that takes steps from one on, at most a number of them."""
        source, begin = self._feed.open(segment.order, first), time.perf_counter()
        chunk = self._chunk_for(source, segment.examples)
        self._tracing_seconds += time.perf_counter() - begin

        def schedule(position: int, most: int) -> PendingChunk:
            count = self._sync_count(min(self._size.steps, chunk.size, most))
            began, arguments = time.perf_counter(), (source, tf.constant(position), tf.constant(count))
            if self._dispatcher:
                return PendingChunk(count, began, self._dispatcher.submit(_rows, chunk.function, *arguments))
            return PendingChunk(count, began, _rows(chunk.function, *arguments))

        return schedule

    def _fetch(self, result: Any) -> npt.NDArray[np.float32]:
        """Wait for the rows of a chunk."""
        return result.result() if self._dispatcher else result

    def _abandon(self, result: Any) -> None:
        """Wait for a chunk whose rows, or error, nobody needs."""
        if self._dispatcher:
            result.exception()

    @property
    def _may_schedule(self) -> bool:
        """Whether another chunk may be scheduled."""
        if self.is_idle or self._must_wait is None:
            return self.is_idle
        return len(self._pending) < self._ahead and not self._must_wait()

    def metrics(self, states: npt.NDArray[np.float64]) -> dict[str, float]:
        """The metrics over all examples of some steps, by series name, as ``fit`` has them of an epoch; not the loss.

        Args:
            states: The sum of the states of chunks.
        """
        return self._step.metrics(states)

    def take_tracing_seconds(self) -> float:
        """Seconds in which segments of new shapes were traced by :meth:`run`, since the last call."""
        seconds, self._tracing_seconds = self._tracing_seconds, 0.0
        return seconds

    @property
    def is_idle(self) -> bool:
        """Whether no chunk is scheduled or running, so that weights may be read and changed."""
        return not self._pending

    def _chunk_for(self, source: Any, examples: int) -> _TracedChunk:
        """The graph for sources of this type, which depends on the batch size but not on the number of steps."""
        spec, uneven = self._feed.spec(source), uneven_batch(examples, self._assembly.replicas)
        key = (str(spec), uneven)
        if key not in self._traced:
            program, zero = self._program(source), tf.constant(0)
            traced = graph_of(partial(self._run_chunk, program, uneven), self._assembly)
            size = program.size if program else MAX_STEPS
            self._traced[key] = _TracedChunk(traced.get_concrete_function(spec, zero, zero), size)
        return self._traced[key]

    def _program(self, source: Any) -> ChunkProgram | None:
        """The chunk as one program of XLA; ``None`` where it is not."""
        if self._compiled is None:
            return None
        try:
            return self._compiled.program(source)
        except UnpreparedDraws:
            if self._assembly.plan.xla != "on":
                raise
            return None  # XLA compiles the step, and draws its random numbers

    def _run_chunk(
        self, program: ChunkProgram | None, uneven: UnevenBatch | None, source: Any, first: tf.Tensor, count: tf.Tensor
    ) -> tf.Tensor:
        """The rows of ``count`` steps, float32 ``[count, series + states + rate]``."""
        if program is not None and self._compiled is not None:
            values = self._compiled.take_steps(program, source, first, count)
            return tf.concat([values, self._constant_rates(count)], axis=1)
        values, rates = self._take_steps(source, first, count, uneven)
        if self._sums_over_workers:
            # One reduction over workers per chunk, not per step.
            sums = self._worker_count * _mean_of_workers(self._strategy, values)
            values = tf.map_fn(lambda row: self._row_of(self._step.unpack(row)), sums)
        return tf.concat([values, rates], axis=1)

    def _take_steps(
        self, source: Any, first: tf.Tensor, count: tf.Tensor, uneven: UnevenBatch | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The rows of ``count`` steps, ``[count, ...]``, or with other workers the sums of this one; the rates."""
        has_rate, replica_step = self._rate_of is not None, self._replica_step(uneven)

        def take(index: tf.Tensor, measured: tf.TensorArray, rates: tf.TensorArray) -> tuple[Any, ...]:
            if has_rate:  # before the update, which advances the schedule
                rates = rates.write(index, read_rate(self._rate_of))
            values = self._strategy.run(replica_step, args=self._feed.arguments(source, first + index))
            return index + 1, measured.write(index, self._row(values)), rates

        empty = [tf.TensorArray(tf.float32, size=count), tf.TensorArray(tf.float32, size=count)]
        with self._traced_layers():
            _, measured, rates = tf.while_loop(lambda index, *_: index < count, take, (tf.constant(0), *empty))
        column = rates.stack()[:, tf.newaxis] if has_rate else self._constant_rates(count)
        return measured.stack(), column

    def _take_compiled_step(self, batch: Batch) -> tf.Tensor:
        """The row of a step in a program of XLA, with the learning rate if a schedule changes it."""
        rate = [read_rate(self._rate_of)] if self._rate_of is not None else []  # before the update, which advances it
        with self._traced_layers():
            return tf.concat([self._run_alone(batch), rate], axis=0)

    def _constant_rates(self, count: tf.Tensor) -> tf.Tensor:
        """A learning rate that no step changes, float32 ``[count, 1]``, or ``[count, 0]``: reading it takes time."""
        if self._constant_rate_of is None:
            return tf.zeros([count, 0])
        return tf.fill([count, 1], read_rate(self._constant_rate_of))

    @contextmanager
    def _traced_layers(self) -> Iterator[None]:
        """Use the kernels and the names of layers with which steps are traced."""
        assembly, model, kernels = self._assembly, self._assembly.model, ExitStack()
        if assembly.uses_layer_kernels:
            chosen = kernels_for(on_cpu=assembly.on_cpu, on_gpu=assembly.on_gpu, xla=self.mode.xla)
            kernels.enter_context(use_fast_kernels(model, chosen))
            if not (
                self.mode.xla or assembly.on_tpu or assembly.coordinated or assembly.plan.optimizer_state == "host"
            ):
                kernels.enter_context(use_fast_updates(model.optimizer))
        if assembly.optimizer_state is not None:
            kernels.enter_context(assembly.optimizer_state.use())
        loops = without_cudnn(model) if self.mode.xla else nullcontext()
        tracing = Tracing(self.mode.xla or assembly.on_tpu, assembly.unseeded)
        # mark_layers comes after the replaced kernels, to mark these too, and before parts, which repeat what it marks.
        with kernels, loops, layer_table.mark_layers(model), run_in_parts(assembly.remat, tracing):
            yield

    def _row(self, values: Any) -> tf.Tensor:
        """The row of a step, or with other workers the sums of this one, from what its replicas returned."""
        if self._alone:
            return self._strategy.experimental_local_results(values)[0]
        sums = [tf.add_n(self._strategy.experimental_local_results(value)) for value in values]
        return pack_states(sums) if self._sums_over_workers else self._row_of(sums)

    def _replica_step(self, uneven: UnevenBatch | None) -> Callable[..., Any]:
        """A step of a replica, from the feed's arguments."""
        run = self._run_alone if self._alone else partial(self._step.run, uneven=uneven)
        # TPUStrategy compiles the whole step anyway.
        compiles = self.mode.xla and not self._assembly.on_tpu
        run_step = graph_of(run, self._assembly, jit_compile=True) if compiles else run

        def replica_step(*arguments: Any) -> Any:
            examples = self._feed.examples(*arguments)
            return run_step(self._assembly.prepare_training(examples) if self._assembly.augmentation else examples)

        return replica_step

    def _run_alone(self, batch: Batch) -> tf.Tensor:
        return self._row_of(self._step.run(batch))

    def _row_of(self, sums: Sequence[tf.Tensor]) -> tf.Tensor:
        """A step's series and the states of its metrics, float32 ``[series + states]``, from the sums over replicas."""
        series, states = self._step.series(sums), self._step.states(sums)
        self._series, self._width = tuple(series), int(states.shape[0])  # Python runs here once per trace
        return tf.concat([tf.stack([tf.cast(value, tf.float32) for value in series.values()]), states], axis=0)

    def _states_of(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The states of a chunk's steps, ``[count, states]``."""
        first = len(self._series)
        return values[:, first : first + self._width]

    def _named(self, values: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
        """The columns of a chunk's result by series name; a custom step may record the learning rate itself."""
        series = dict(zip(self._series, values.T, strict=False))
        if self._has_rate:
            series.setdefault(LEARNING_RATE, values[:, -1])
        return series


def schedules_ahead(assembly: Assembly) -> bool:
    """Whether a chunk is scheduled while the one before it is running: where other devices than this CPU run them.

    Several workers would have to agree on what comes between two chunks. The metrics of an epoch of a custom
    ``train_step`` come from its Python, which may look at variables that the next chunk changes.
    """
    alone = assembly.single_process and not assembly.has_custom_train_step
    return assembly.coordinated or (assembly.on_gpu and alone)


def _rows(function: Any, *arguments: Any) -> npt.NDArray[np.float32]:
    """Take the steps of a chunk, and copy their rows: a copy from a GPU waits for all that was started on it before."""
    return function(*arguments).numpy()


def _shapes(segment: Segment) -> tuple[Any, ...]:
    """The key of a segment's graph: its examples, and the shape of each array of a step."""
    return segment.examples, *(tuple(array.shape[1:]) for array in flatten(segment.order))


def _mean_of_workers(strategy: tf.distribute.Strategy, values: tf.Tensor) -> tf.Tensor:
    """The mean of a tensor over all workers; call it in a graph that all of them run."""
    return strategy.reduce("MEAN", strategy.run(tf.identity, args=(values,)), axis=None)
