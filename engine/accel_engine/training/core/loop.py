"""Runs training steps in compiled chunks: many steps per dispatch, with the metrics of every step.

A Python loop costs a dispatch and a host round trip per step; ``fit`` with ``steps_per_execution`` costs less, but
hides the steps. Here k steps run inside one ``tf.function``, which returns the metrics of each, ``[k, series]``. k is
a tensor, so it can change without retracing.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock
from accel_engine.devices.host_probe import processors
from accel_engine.errors import ModelError
from accel_engine.keras_support.optimizers import has_constant_rate, read_rate
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.gradients import global_norm
from accel_engine.training.core.micro_batches import GradientFunction, accumulate_gradients
from accel_engine.training.cpu_kernels import layer_kernels
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
        step, optimizer = _step(assembly, mode.micro_batches), assembly.optimizer
        # Only a custom train_step could change the rate within a chunk.
        constant = optimizer is not None and has_constant_rate(optimizer) and not assembly.has_custom_train_step
        self._constant_rate_of = optimizer if constant else None
        if optimizer is not None and not constant:
            step = _with_rate(step, optimizer)
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
        assembly = self._assembly
        with layer_kernels.use_fast_kernels(assembly, xla=self.mode.xla), layer_table.mark_layers(assembly.model):
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


Step = Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]


def _step(assembly: Assembly, micro_batches: int) -> Step:
    """A function that runs one optimizer update on one replica, from raw examples and sparse labels to metrics."""
    model, labels = assembly.model, assembly.label_encoding
    if assembly.has_custom_train_step:
        return _own_step(assembly)
    replicas = assembly.strategy.num_replicas_in_sync
    names = ("loss", "accuracy") if assembly.is_classifier else ("loss",)

    def compute_gradients(x: tf.Tensor, y: tf.Tensor) -> tuple[list[Any], list[tf.Tensor]]:
        inputs = scaled(x, assembly.scale)
        targets = labels.encode(y)
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            # Keras divides it, regularization included, by the number of replicas, over which gradients are summed.
            loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, training=True)
            objective = model.optimizer.scale_loss(loss)
        measured = [tf.cast(mean_loss(loss) * replicas, tf.float32)]
        if assembly.is_classifier:
            measured.append(tf.reduce_mean(labels.correct(y, outputs)))
        return tape.gradient(objective, model.trainable_variables), measured

    compute_all: GradientFunction = compute_gradients
    if micro_batches > 1:
        parallel = 1 if assembly.plan.micro_batches else processors()  # the plan's are to save memory
        compute_all = accumulate_gradients(
            compute_gradients, model.trainable_variables, len(names), micro_batches, parallel_iterations=parallel
        )

    def step(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        gradients, measured = compute_all(x, y)
        logs = dict(zip(names, measured, strict=True))
        if assembly.plan.gradient_norm == "on":  # before the optimizer updates the loss scale
            logs["gradient_norm"] = global_norm(gradients, model.optimizer.scale_loss(tf.constant(1.0)))
        model.optimizer.apply(gradients, model.trainable_variables)
        return logs

    return step


def _with_rate(step: Step, optimizer: keras.Optimizer) -> Step:
    """A step that also returns the learning rate of its update, unless it already does."""

    def step_with_rate(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        rate = read_rate(optimizer)  # before the update, which advances the schedule
        logs = step(x, y)
        return {**logs, LEARNING_RATE: logs.get(LEARNING_RATE, rate)}

    return step_with_rate


def _own_step(assembly: Assembly) -> Step:
    """A custom ``train_step``, with metrics reset so that they are this step's, not running means."""
    model, labels, names = assembly.model, assembly.label_encoding, assembly.names

    def step(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        for metric in model.metrics:
            metric.reset_state()
        logs = model.train_step((scaled(x, assembly.scale), labels.encode(y)))
        scalars = names.scalars(keras.tree.map_structure(tf.convert_to_tensor, logs))
        if "loss" not in scalars:
            raise ModelError(f"the model's train_step returns {', '.join(scalars) or 'nothing'} but no loss")
        return scalars

    return step


def graph_of(function: Callable[..., Any], assembly: Assembly, **options: Any) -> Any:
    """Wrap a function in ``tf.function``.

    Without AutoGraph, which takes three quarters of the time of tracing, unless a custom ``train_step`` or
    ``test_step`` may need it.
    """
    return tf.function(function, autograph=assembly.has_custom_train_step, **options)


def mean_of_workers(strategy: tf.distribute.Strategy, values: tf.Tensor) -> tf.Tensor:
    """The mean of a tensor over all workers; call it in a graph that all of them run."""
    return strategy.reduce("MEAN", strategy.run(tf.identity, args=(values,)), axis=None)


def mean_loss(loss: tf.Tensor) -> tf.Tensor:
    """A loss as a scalar: the mean of one without a reduction, as in ``fit``."""
    return tf.reduce_mean(loss) if loss.shape.rank else loss


def scaled(x: tf.Tensor, scale: float) -> tf.Tensor:
    """Convert raw examples to float32 and multiply them by a factor."""
    x = tf.cast(x, tf.float32)
    return x * scale if scale != 1.0 else x
