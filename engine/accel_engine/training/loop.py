"""The compiled loop: many steps a dispatch, one loss and accuracy a step.

A Python loop pays for every step a dispatch and a host round trip; ``fit`` with
``steps_per_execution`` pays less and hides the steps. Here k steps run inside one ``tf.function``
that returns what each of them measured, ``[k, series]``. k is a tensor, so that it can adapt
without another trace.
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
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.training import cpu_layers, layer_table, optimizer_rate
from accel_engine.training.assembly import Assembly
from accel_engine.training.gradients import global_norm
from accel_engine.training.micro_batches import Learn, in_parts

CHUNK_SECONDS = 0.05
"""How long a chunk should take: short enough for a live curve and a quick stop, long enough to feed a device."""

SHARED_CHUNK_SECONDS = 4 * CHUNK_SECONDS
"""The same with other workers, who have to agree on every chunk."""

MAXIMUM_STEPS = 4096
"""The most steps of a chunk."""


@dataclass(frozen=True, slots=True)
class ExecutionMode:
    """How steps are taken.

    Attributes:
        xla: Whether XLA compiles the step.
        parts: Micro-batches that each replica's batch is taken in.
    """

    xla: bool = False
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What a chunk of steps measured.

    Attributes:
        count: Number of steps.
        started: Seconds since the Unix epoch.
        seconds: How long it took.
        series: float32 arrays ``[count]`` by name.
    """

    count: int
    started: float
    seconds: float
    series: dict[str, npt.NDArray[np.float32]]


class ChunkSize:
    """Adapts the number of steps of a chunk to the time that a step takes."""

    def __init__(self, target: float = CHUNK_SECONDS, least: int = 1) -> None:
        self._target = target
        self._least = least
        self.steps = least

    def learn(self, count: int, seconds: float) -> None:
        """Take in how long a chunk took; grow at most fourfold, so that one quick chunk is no surprise."""
        wanted = int(self._target / max(seconds / count, 1e-9))
        self.steps = max(self._least, min(wanted, 4 * self.steps, MAXIMUM_STEPS))


class Loop:
    """Runs the training steps of one assembly.

    Args:
        assembly: Model, data and strategy.
        way: How steps are taken.
        agree: Brings all workers to one number of steps for the next chunk.
    """

    def __init__(self, assembly: Assembly, way: ExecutionMode, *, agree: Callable[[int], int] = int) -> None:
        self.way = way
        self._agree = agree
        self._assembly = assembly
        self._strategy = assembly.strategy
        self._feed = assembly.feed
        self._size = ChunkSize(
            CHUNK_SECONDS if assembly.alone else SHARED_CHUNK_SECONDS, least=assembly.simultaneous_steps
        )
        self._names: tuple[str, ...] = ()
        step, optimizer = _step(assembly, way.parts), assembly.optimizer
        # Only a train_step of the user's could set another rate in the middle of a chunk.
        constant = optimizer is not None and optimizer_rate.is_constant(optimizer) and not assembly.own_train_step
        self._constant_rate_of = optimizer if constant else None
        if optimizer is not None and not constant:
            step = _with_rate(step, optimizer)
        # A TPU's strategy has the whole step compiled anyway.
        self._step = graph_of(step, assembly, jit_compile=True) if way.xla and not assembly.on_tpu else step
        self._chunk = graph_of(self._run_chunk, assembly)

    def trace(self, order: npt.NDArray[np.int32]) -> tf.Graph:
        """Trace the graph of a chunk, so that the first chunk does not have to, and give it."""
        zero = tf.constant(0)
        return self._chunk.get_concrete_function(self._feed.open(order), zero, zero).graph

    def run(self, order: npt.NDArray[np.int32], first: int = 0) -> Iterator[Measured]:
        """Take the steps of an order, yielding between two chunks.

        Args:
            order: Row numbers, int32 ``[steps, replicas, per_replica_batch]``.
            first: The step to begin with.
        """
        source = self._feed.open(order, first)
        done = first
        while done < len(order):
            count = self._agree(min(self._size.steps, len(order) - done))
            started, begin = clock.now(), time.perf_counter()
            values = self._take(source, done, count)
            seconds = time.perf_counter() - begin
            self._size.learn(count, seconds)
            done += count
            yield Measured(count, started, seconds, dict(zip(self._names, values.T, strict=True)))

    @property
    def at_rest(self) -> bool:
        """Whether all steps that were begun are done, so that weights may be looked at and changed."""
        return True

    def rate(self, order: npt.NDArray[np.int32], seconds: float) -> float:
        """Take steps for about so many seconds and tell how many a second; the first chunk warms up."""
        count, spent, warm = 0, 0.0, False
        while spent < seconds:
            for measured in self.run(order):
                if warm:
                    count += measured.count
                    spent += measured.seconds
                warm = True
                if spent >= seconds:
                    break
        return count / spent

    def _take(self, source: Any, first: int, count: int) -> npt.NDArray[np.float32]:
        """Take so many steps from one on; what they measured, ``[count, series]``."""
        values: npt.NDArray[np.float32] = self._chunk(source, tf.constant(first), tf.constant(count)).numpy()
        return values

    def _run_chunk(self, source: Any, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        series = self._take_steps(source, first, count)
        # The other workers' replicas are asked once a chunk, not once a step.
        return series if self._assembly.alone else mean_of_workers(self._strategy, series)

    def _take_steps(self, source: Any, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """What this worker's replicas measure in so many steps, ``[count, series]``."""

        def take(index: tf.Tensor, measured: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            values = self._strategy.run(self._replica_step, args=self._feed.arguments(source, first + index))
            here = self._strategy.experimental_local_results(values)
            return index + 1, measured.write(index, tf.add_n(here) / len(here))

        nothing = tf.TensorArray(tf.float32, size=count)
        # Marked outside: what takes the place of a layer's own call is that layer's, too.
        with cpu_layers.faster(self._assembly, xla=self.way.xla), layer_table.marked(self._assembly.model):
            _, measured = tf.while_loop(lambda index, _: index < count, take, (tf.constant(0), nothing))
        series = measured.stack()
        if self._constant_rate_of is None:
            return series
        self._names = (*self._names, LEARNING_RATE)
        rate = optimizer_rate.read(self._constant_rate_of)  # once a chunk: at each step it would cost time
        return tf.concat([series, tf.fill([count, 1], rate)], axis=1)

    def _replica_step(self, *arguments: Any) -> tf.Tensor:
        logs = self._step(*self._feed.examples(*arguments))
        # Python runs here once a trace: the names of what the graph measures.
        self._names = tuple(logs)
        return tf.stack([tf.cast(value, tf.float32) for value in logs.values()])


Step = Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]


def _step(assembly: Assembly, parts: int) -> Step:
    """One optimizer update on one replica: from raw examples and sparse labels to what it measured."""
    model, labels = assembly.model, assembly.labels
    if assembly.own_train_step:
        return _own_step(assembly)
    replicas = assembly.strategy.num_replicas_in_sync
    names = ("loss", "accuracy") if assembly.classifies else ("loss",)

    def learn(x: tf.Tensor, y: tf.Tensor) -> tuple[list[Any], list[tf.Tensor]]:
        inputs = scaled(x, assembly.scale)
        targets = labels.encode(y)
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            # Keras divides it, penalties too, by the number of replicas, over which gradients are summed.
            loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, training=True)
            objective = model.optimizer.scale_loss(loss)
        measured = [tf.cast(mean_loss(loss) * replicas, tf.float32)]
        if assembly.classifies:
            measured.append(tf.reduce_mean(labels.correct(y, outputs)))
        return tape.gradient(objective, model.trainable_variables), measured

    learn_all: Learn = learn
    if parts > 1:
        abreast = 1 if assembly.plan.micro_batches else processors()  # asked for, they are to spare memory
        learn_all = in_parts(learn, model.trainable_variables, len(names), parts, abreast=abreast)

    def step(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        gradients, measured = learn_all(x, y)
        logs = dict(zip(names, measured, strict=True))
        if assembly.plan.gradient_norm == "on":  # before it changes the scale
            logs["gradient_norm"] = global_norm(gradients, model.optimizer.scale_loss(tf.constant(1.0)))
        model.optimizer.apply(gradients, model.trainable_variables)
        return logs

    return step


def _with_rate(step: Step, optimizer: keras.Optimizer) -> Step:
    """A step that also gives the learning rate that its update used, unless it gives one itself."""

    def step_with_rate(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        rate = optimizer_rate.read(optimizer)  # before the update, which increments the iterations of a schedule
        logs = step(x, y)
        return {**logs, LEARNING_RATE: logs.get(LEARNING_RATE, rate)}

    return step_with_rate


def _own_step(assembly: Assembly) -> Step:
    """A model's own ``train_step``, with its metrics reset so that they are this step's, not running means."""
    model, labels, names = assembly.model, assembly.labels, assembly.names

    def step(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        for metric in model.metrics:
            metric.reset_state()
        logs = model.train_step((scaled(x, assembly.scale), labels.encode(y)))
        scalars = names.scalars(keras.tree.map_structure(tf.convert_to_tensor, logs))
        if "loss" not in scalars:
            raise ModelError(f"the model's train_step returns {', '.join(scalars) or 'nothing'}, but no loss")
        return scalars

    return step


def graph_of(function: Callable[..., Any], assembly: Assembly, **options: Any) -> Any:
    """Compile a function to a graph when it is first called.

    Without AutoGraph, whose rewriting of Python takes three quarters of the time of tracing; only a model's own
    ``train_step`` and ``test_step`` may be written for it.
    """
    return tf.function(function, autograph=assembly.own_train_step, **options)


def mean_of_workers(strategy: tf.distribute.Strategy, values: tf.Tensor) -> tf.Tensor:
    """The mean over all workers of what each has; in a graph, and on all of them at the same time."""
    return strategy.reduce("MEAN", strategy.run(tf.identity, args=(values,)), axis=None)


def mean_loss(loss: tf.Tensor) -> tf.Tensor:
    """A loss as one number, which is what ``fit`` shows of one that has a number for each example."""
    return tf.reduce_mean(loss) if loss.shape.rank else loss


def scaled(x: tf.Tensor, scale: float) -> tf.Tensor:
    """Bring raw examples to float32 and integer images to [0, 1]."""
    x = tf.cast(x, tf.float32)
    return x * scale if scale != 1.0 else x
