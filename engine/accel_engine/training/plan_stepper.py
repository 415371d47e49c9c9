"""Takes steps of a plan for as long as somebody asks for them, without a run on disk.

The code that trains a run assembles the plan, and compiles and takes its steps. There is no autotuning, and no
validation or checkpoint that is not asked for.
"""

import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.dataset import Split
from accel_engine.devices import Inventory, detect
from accel_engine.doctor.tf_probe import refuse_xla_flags
from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.requests.try_plan import Turn
from accel_engine.run import diagnostics
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.autotuning.mode_choice import plan_mode
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.core import device_visibility
from accel_engine.training.core.assembly import Assembly, assemble, build_strategy
from accel_engine.training.core.batches import Batches, training_batches
from accel_engine.training.core.compiled_model import compile_model
from accel_engine.training.core.feed import PREFETCH, Segment
from accel_engine.training.core.loop import ChunkResult, Loop
from accel_engine.training.distributed import strategy_builders
from accel_engine.training.distributed.coordinated_loop import CoordinatedLoop
from accel_engine.training.distributed.worker_sync import WorkerSync
from accel_engine.training.evaluation.validation import Validation, validation_of
from accel_engine.training.learning_rate_override import LearningRateOverride
from accel_engine.training.memory_meters import HostMemory


class PlanStepper:
    """A plan whose steps are compiled, at its first step or at the step of a checkpoint.

    Each worker of a cluster has one, and all of them take the same steps.

    Args:
        plan: The plan; ``xla`` ``auto`` means ``off`` here.
        folder: A directory for this trial, with a copy of the checkpoint to start from, if there is one.
        step: The step of that checkpoint; 0 to start from the initial weights.
        run: Directory of the run that the checkpoint is of; only its diagnostics are read.
        progress: Reports the number of examples read.
        cluster: The processes that train together, as this one sees them; ``None`` for a single process.

    Attributes:
        build_seconds: How long it took to read the data and build the model.
        compile_seconds: How long it took to trace and compile a step of a full batch, and to take the first one.
        global_batch: Examples of the first step, over all replicas; a stream tells it by its batches only.

    Raises:
        AccelError: The plan cannot be trained, or the checkpoint does not fit it.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        step: int = 0,
        run: Path | None = None,
        progress: Progress = no_progress,
        cluster: ClusterSpec | None = None,
    ) -> None:
        self._host_memory = HostMemory()
        self._host_memory.start()
        began = time.perf_counter()
        self._step = step
        trained = diagnostics.read(run) if run and step else None
        self._assembly, self._device_memory = _assembled(plan, trained, progress, cluster)
        self._sync = WorkerSync(self._assembly.strategy, cluster) if cluster and not cluster.coordinated else None
        self._turn_end = 0.0
        self._start = training_batches(self._assembly)  # has the position of the start
        self._batches = self._start
        self._checkpoints = Checkpoints(self._assembly, folder, self._start)
        if not step:
            self._checkpoints.save(0)
        self.build_seconds = time.perf_counter() - began
        self._segments: Iterator[Segment] = iter(())
        self._segment: Segment | None = None
        self._position = 0
        self._running: Iterator[ChunkResult] = iter(())
        self._validation: Validation | None = None
        self._rates: LearningRateOverride | None = None
        self.restore()
        began = time.perf_counter()
        self._planned_loop = self._loop = self._make_loop()
        segment = self._batches.first_segment()
        self._compile(segment)
        self.global_batch = segment.examples
        self.compile_seconds = time.perf_counter() - began
        if last := _last_segment(self._assembly):
            self._compile(last)
        self.restore()

    @property
    def assembly(self) -> Assembly:
        """Model, data and strategy."""
        return self._assembly

    @property
    def graphs(self) -> list[tf.Graph]:
        """The graphs of the steps."""
        return self._loop.graphs

    @property
    def device_memory(self) -> int | None:
        """Memory of each device in bytes; ``None`` for host memory."""
        return self._device_memory

    @property
    def has_orders(self) -> bool:
        """Whether another seed gives another order of the examples."""
        return isinstance(self._assembly.dataset.train, Split) and self._assembly.plan.shuffle == "on"

    def _make_loop(self) -> Loop:
        assembly = self._assembly
        if assembly.coordinated:
            return CoordinatedLoop(assembly, self._turn_is_over)
        sync_count = self._sync.broadcast if self._sync else int
        return Loop(assembly, plan_mode(assembly), sync_count=sync_count, must_wait=self._turn_is_over)

    def _turn_is_over(self) -> bool:
        return time.perf_counter() >= self._turn_end

    def _compile(self, segment: Segment) -> None:
        """Trace and compile steps of a batch size, and take one, as XLA compiles some only then."""
        if self._assembly.single_process:
            self._loop.compile(segment)
        next(self._loop.run(segment, 0, lambda _: 1))

    def restore(self, seed: int | None = None, *, initialize: bool = False) -> None:
        """Return to the step of the start.

        Args:
            seed: The seed of the order of the examples from there on; by default the plan's.
            initialize: Whether the weights are the initial ones of this seed, if the start is not a checkpoint.
        """
        self._end_rates()
        self._running, self._segment = iter(()), None
        self._batches.close()
        self._checkpoints.restore(self._step)
        if initialize and not self._step and seed not in (None, self._assembly.plan.seed):
            self._initialize(seed)
        self._batches = self._ordered(seed)
        self._batches.position = self._start.position
        epochs, done = self._batches.restore(self._step)
        if self._assembly.freezing.is_due(epochs + (done > 0)):
            self._assembly.freezing.end()
        self._segments = self._all_segments(epochs, done)

    def _initialize(self, seed: int | None) -> None:
        """Give the model the initial weights of a seed."""
        random.seed(seed)  # Keras' initializers draw from it
        tf.random.set_seed(seed)
        with tf.device("CPU:0"):  # in host memory
            other = compile_model(self._assembly.resolved, self._assembly.dataset, None).model
        self._assembly.model.set_weights(other.get_weights())

    def _ordered(self, seed: int | None) -> Batches:
        assembly = self._assembly
        if seed is None:
            return training_batches(assembly)
        resolved = replace(assembly.resolved, plan=assembly.plan.replace(seed=seed))
        return training_batches(replace(assembly, resolved=resolved))

    def _all_segments(self, epoch: int, done: int) -> Iterator[Segment]:
        """The segments of this epoch and of all later ones: a trial does not end with the plan's last epoch."""
        while True:
            yield from self._batches.segments(epoch, done, lambda: self._loop.chunk_steps)
            epoch, done = epoch + 1, 0

    def take_for(self, seconds: float) -> Turn:
        """Take steps for some seconds, at least one chunk; of several workers, the chief decides when they end.

        Batches that were read ahead while no step was taken do not count, nor do the steps that use them.
        """
        if self._assembly.feed.kind != "resident":
            self.take(PREFETCH + 1)
        began = time.perf_counter()
        self._turn_end = began + seconds
        chunks = [self._next_chunk()]
        while self._turn_continues():
            chunks.append(self._next_chunk())
        return _taken(chunks, time.perf_counter() - began)

    def _turn_continues(self) -> bool:
        """Whether the turn is not over, or workers of a coordinator still run steps of it."""
        is_on = time.perf_counter() < self._turn_end or not self._loop.is_idle
        return bool(self._sync.broadcast(is_on)) if self._sync else is_on

    def take(self, steps: int) -> Turn:
        """Take a number of steps."""
        began, chunks, left = time.perf_counter(), list[ChunkResult](), steps
        self._running = iter(())
        while left:
            chunk = self._next_chunk(left)
            chunks.append(chunk)
            left -= chunk.count
        self._running = iter(())
        return _taken(chunks, time.perf_counter() - began)

    def take_at(self, rates: Sequence[float]) -> Turn:
        """Take a step at each of some learning rates, up to the first loss that is not finite.

        The optimizer keeps the last one until :meth:`restore`.

        Args:
            rates: The optimizer's rates, whatever its schedule says.

        Raises:
            RunError: A learning rate means nothing for this model.
        """
        if self._rates is None:
            self._begin_rates()
        assert self._rates is not None  # noqa: S101 (it was just made)
        began, chunks = time.perf_counter(), list[ChunkResult]()
        self._running = iter(())
        for rate in rates:
            self._rates.set(rate)
            chunks.append(chunk := self._next_chunk(1))
            if "loss" not in chunk.series:
                raise RunError("the model's custom train_step returns no loss")
            if not math.isfinite(chunk.series["loss"][-1]):
                break
        self._running = iter(())
        return _taken(chunks, time.perf_counter() - began)

    def _begin_rates(self) -> None:
        self._rates = LearningRateOverride(self._assembly)
        if self._rates.replaces_schedule:  # which is part of the graph
            self._loop = self._make_loop()

    def _end_rates(self) -> None:
        if self._rates is not None:
            self._rates.end()
            self._rates, self._loop = None, self._planned_loop

    def _next_chunk(self, most: int | None = None) -> ChunkResult:
        """The next chunk, of a run of the loop that ends after at most a number of steps."""
        while (chunk := next(self._running, None)) is None:
            if self._segment is None or self._position >= self._segment.steps:
                self._segment, self._position = next(self._segments), 0
            self._running = self._run(self._segment, most)
        self._position += chunk.count
        self._batches.count(chunk.count)
        return chunk

    def _run(self, segment: Segment, most: int | None) -> Iterator[ChunkResult]:
        end = segment.steps if most is None else min(segment.steps, self._position + most)
        return self._loop.run(segment, self._position, lambda _: end)

    def validate(self) -> tuple[dict[str, float], float]:
        """Validate the model; returns its metrics, empty without validation data, and how long it took in seconds."""
        self._validation = self._validation or validation_of(self._assembly, self._device_memory)[0]
        if self._validation is None:
            return {}, 0.0
        began = time.perf_counter()
        return self._validation.run(), time.perf_counter() - began

    def save(self) -> float:
        """Save a checkpoint, and delete it; returns how long saving took in seconds."""
        step = 1 + max(self._checkpoints.steps)
        began = time.perf_counter()
        self._checkpoints.save(step)
        seconds = time.perf_counter() - began
        self._checkpoints.delete_after(step - 1)
        return seconds

    @property
    def peak_memory(self) -> float | None:
        """Bytes that one device had allocated at most, or by which this process grew on a CPU; ``None`` if unknown."""
        return peak_memory(self._assembly.devices, self._host_memory)

    def close(self) -> None:
        """Stop reading ahead."""
        self._batches.close()


def peak_memory(devices: Sequence[str], host_memory: HostMemory) -> float | None:
    """Bytes that one device had allocated at most, or by which this process grew on a CPU; ``None`` if unknown.

    Args:
        devices: TensorFlow's names of the devices that train.
        host_memory: Measures this process.
    """
    if devices[0].startswith("CPU"):
        return host_memory.stop()
    try:
        return max(float(tf.config.experimental.get_memory_info(name)["peak"]) for name in devices)
    except (ValueError, RuntimeError, tf.errors.OpError):
        return None


def _assembled(
    plan: Plan, trained: diagnostics.Diagnostics | None, progress: Progress, cluster: ClusterSpec | None
) -> tuple[Assembly, int | None]:
    """Assemble a plan on its devices; returns the bytes of each device, too, ``None`` for host memory."""
    resolved = replace(resolve(plan, chosen=()).check(), cluster=cluster)
    if resolved.tpu is None:
        refuse_xla_flags(with_xla=plan.xla == "on")
    inventory = detect() if resolved.tpu is not None else device_visibility.with_tensorflow_gpus(detect())
    resolved, names = _configured(resolved, inventory)
    strategy = build_strategy(names, resolved)
    memory = device_visibility.device_memory(names, resolved, inventory)
    return assemble(resolved, names, memory, trained, progress, strategy), memory


def _configured(resolved: ResolvedPlan, inventory: Inventory) -> tuple[ResolvedPlan, tuple[str, ...]]:
    if resolved.tpu is not None:
        return resolved, strategy_builders.connect_tpu(resolved.tpu)
    placed = device_visibility.place_on_visible(resolved, inventory)
    return placed, device_visibility.configure(placed, inventory, placed.plan.threads)


def _last_segment(assembly: Assembly) -> Segment | None:
    """A segment of the last, smaller batch of an epoch; ``None`` if there is none, or in a stream."""
    counts = assembly.step_counts
    if not counts.last_batch or not isinstance(assembly.dataset.train, Split):
        return None
    share = -(-counts.last_batch // counts.replicas)
    return Segment(np.zeros((1, counts.replicas, share), np.int32), 1, counts.last_batch)


def _taken(chunks: list[ChunkResult], seconds: float) -> Turn:
    return Turn(
        sum(chunk.count for chunk in chunks),
        sum(chunk.count * chunk.examples for chunk in chunks),
        seconds,
        tuple(float(loss) for chunk in chunks for loss in chunk.series.get("loss", ())),
    )
