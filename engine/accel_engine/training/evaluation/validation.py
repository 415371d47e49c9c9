"""Validates a model on every validation example, including the last partial batch.

One pass gives the loss, every metric, and what the diagnostics of the task need. Each replica adds up the states of its
metrics, and writes the values of its examples into a vector that is zero elsewhere, so that the sum over replicas
holds all of them.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Examples, Split
from accel_engine.data.structure import Batch, Structure, flatten
from accel_engine.errors import DataError
from accel_engine.keras_support.divisibility import answers_by_example
from accel_engine.keras_support.model_structure import fixed_batch
from accel_engine.models.model_call import call_model
from accel_engine.private_names.keras_names import LayerLosses, layer_losses
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.compiled_chunk import ChunkSize
from accel_engine.training.core.feed import CachedFeed, Feed, choose_feed
from accel_engine.training.core.loop import CHUNKS_AHEAD
from accel_engine.training.core.metric_states import MetricStates, mean_loss, pack_states
from accel_engine.training.core.moving_statistics import MovingStatistics
from accel_engine.training.core.step import graph_of, main_loss
from accel_engine.training.core.stream_feed import StreamFeed
from accel_engine.training.core.worker_data import WorkerDataFeed
from accel_engine.training.distributed.coordinated_loop import WorkerPool
from accel_engine.training.evaluation.baseline import BaselineResult, baseline_of
from accel_engine.training.evaluation.reports.choice import report_for, unmeasured_report
from accel_engine.training.evaluation.task_report import TaskReport, input_spec_of
from accel_engine.training.evaluation.validation_parts import ValidationPart, row_parts, stream_parts
from accel_engine.training.evaluation.worst_examples import WorstExamples
from accel_engine.training.model_analysis.activations import output_sizes
from accel_engine.training.reporting.error_explanation import message_of

MAX_BATCH = 256
"""The largest per-replica batch, unless training uses a larger one."""

GROWTH = 4
"""Batch size relative to training: it fits in memory, as no activations are saved for gradients."""

MAX_GPU_BATCH = 8192
"""The same on a GPU, as far as :data:`GPU_MEMORY_SHARE` allows: kernels of small batches take longer to launch than
to run."""

GPU_MEMORY_SHARE = 1 / 16
"""The share of a GPU's memory that the outputs of all layers may take. Most of them are freed before the last."""

RESULT_BYTES = 1 << 26
"""Limit of the bytes of results that are copied to the host together; a single batch may have more."""


class Validation:
    """Validates the model of an assembly.

    Args:
        assembly: Model, data and strategy, with validation data.
        device_memory: Free bytes of each device; ``None`` for host memory, 0 if unknown.

    Attributes:
        depends_on_batch: Whether batches of another size may give another loss or other metrics.
    """

    def __init__(self, assembly: Assembly, device_memory: int | None) -> None:
        examples = assembly.dataset.validation
        if examples is None:
            raise ValueError("there is no validation data")
        self._assembly = assembly
        self._data = examples
        self._replicas = assembly.replicas
        share = assembly.step_counts.per_replica_batch
        self.depends_on_batch = not answers_by_example(assembly.model)
        # The plan's batches, as in fit; larger ones only where that cannot change a result.
        self._size = share if self.depends_on_batch else max(share, _largest_batch(assembly, examples, device_memory))
        self._limit: int | None = None  # of the batches of a stream
        self._largest = 0
        self._chunk = ChunkSize()
        self._custom = assembly.has_custom_train_step
        self._feed = _feed(assembly, examples, device_memory)
        self._states = MetricStates(assembly.model, assembly.metrics, assembly.names)
        self._statistics = MovingStatistics(assembly)
        self._report = None if self._custom else _report_for(assembly)
        predict = graph_of(self._predict, assembly, reduce_retracing=fixed_batch(assembly.model) is None)
        self._worst = WorstExamples(examples, self._report, predict)
        self._report_sums = self._baseline_sums = np.zeros(0)  # of the last run
        self._logged: tuple[str, ...] = ()  # names of the logs of a custom test_step
        self._baseline = None if self._custom else baseline_of(assembly.task, assembly.dataset, assembly.outputs)
        self.retrace()

    def retrace(self) -> None:
        """Make a new graph: for a smaller batch, or other trainable layers, whose regularizers are part of the loss."""
        self._takes_any = fixed_batch(self._assembly.model) is None
        self._batches = graph_of(self._run_batches, self._assembly, reduce_retracing=self._takes_any)

    def halve_batches(self) -> int:
        """Halve the batches: at most half as many examples as the largest batch of the last :meth:`run` had.

        Returns:
            The size of a batch on each replica; 0 if it took single examples.
        """
        size = self._largest // 2
        if size:
            self._size = self._limit = size
            self.retrace()
        return size

    def problem(self) -> str:
        """Why the model cannot be validated; empty if it can. Traces a custom ``test_step``, without running it."""
        if isinstance(self._data, Split) and not len(self._data):
            return "there are no validation examples"
        if not self._custom:
            return ""  # its loss was checked when it was compiled
        part = next(self._parts(), None)
        if part is None:
            return "there are no validation examples"
        try:
            self._batches.get_concrete_function(self._feed.open(part.order), tf.constant(0), tf.constant(0))
        except Exception as error:  # noqa: BLE001 (a user's test_step may raise anything)
            return f"the model's test_step cannot run: {message_of(error)}"
        return ""

    def run(self, between_chunks: Callable[[], None] = lambda: None) -> dict[str, float]:
        """Return ``loss`` and every metric over all examples.

        Args:
            between_chunks: Called after some batches; what it raises ends the validation.

        Raises:
            DataError: A stream has no batches, as an iterator that was read to its end.
        """
        for metric in self._assembly.model.metrics:
            metric.reset_state()
        self._statistics.share()
        total: Any = 0.0
        measured = 2 + self._states.width
        fixed = measured + self._baseline_width + self._totals
        self._worst.clear()
        first = self._largest = 0
        for part in self._parts():
            self._largest = max(self._largest, -(-part.examples // self._replicas))
            for step, sums in enumerate(self._run_part(part, between_chunks)):
                own = sums if self._custom else sums[:fixed]
                total = total + part.weight * own.astype(np.float64)
                self._worst.examples += part.examples
                if self._report:
                    rows = part.order[step] if isinstance(self._data, Split) else None
                    values = sums[fixed:].reshape(-1, self._report.width)
                    self._worst.add(values, first, rows, part.batch, repeated=part.weight < 1)
                first += part.examples
        if not self._worst.examples:
            raise DataError("the validation data gave no batches")
        if self._custom:
            means = dict(zip(self._logged, (total[1:] / total[0]).tolist(), strict=True))
            return _with_loss(means | self._named(self._assembly.model.get_metrics_result()))
        self._baseline_sums, self._report_sums = np.split(total[measured:], [self._baseline_width])
        states = self._states.unpack(tf.constant(total[2:measured], tf.float32))
        metrics = {name: float(value) for name, value in self._states.results(states).items()}
        return {"loss": float(total[0] / total[1]), **metrics}

    def report(self) -> tuple[DiagnosticsItem, ...]:
        """The diagnostics of the last :meth:`run`, which the run stores."""
        if self._report is None:
            return (unmeasured_report(self._worst.examples, self._assembly.outputs),)
        return self._report.build(self._worst.values, self._report_sums, self._worst.read, self._worst.predict)

    def baseline(self) -> BaselineResult | None:
        """The metrics of the baseline in the last :meth:`run`; ``None`` if unknown."""
        return self._baseline.result(self._baseline_sums) if self._baseline else None

    def _predict(self, inputs: Structure) -> Structure:
        """The model's outputs for raw inputs, in a graph."""
        assembly = self._assembly

        def call(inputs: Structure) -> Structure:
            return _call(assembly.model, assembly.scaled(inputs), assembly.averaged_weights())[0]

        if assembly.coordinated:
            return call(inputs)
        outputs = assembly.strategy.run(call, args=(inputs,))
        return keras.tree.map_structure(lambda each: assembly.strategy.experimental_local_results(each)[0], outputs)

    @property
    def _baseline_width(self) -> int:
        return self._baseline.width if self._baseline else 0

    @property
    def _totals(self) -> int:
        return self._report.totals if self._report else 0

    def _parts(self) -> Iterator[ValidationPart]:
        if isinstance(self._data, Split):
            return row_parts(len(self._data), self._replicas, self._size)
        assert isinstance(self._feed, StreamFeed)  # noqa: S101 (the feed of a stream)
        return stream_parts(self._data, self._feed, self._replicas, self._limit)

    def _run_part(self, part: ValidationPart, between: Callable[[], None]) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the sums and values of each batch of a part; several batches are computed and copied at once."""
        if self._assembly.coordinated:
            for sums in self._run_on_workers(part.order):
                yield sums
                between()
            return
        source = self._feed.open(part.order)
        run, done, most = self._traced_for(source), 0, 1  # the size of a result is known after the first batch
        while done < part.steps:
            count, began = min(self._chunk.steps, part.steps - done, most), time.perf_counter()
            rows = run(source, tf.constant(done), tf.constant(count)).numpy()
            if self._assembly.single_process:
                self._chunk.update(count, time.perf_counter() - began)
                most = max(1, RESULT_BYTES // rows[0].nbytes)
            done += count
            yield from rows
            between()

    def _traced_for(self, source: Any) -> Any:
        """The graph for a source: one for batches of any size, where the examples are on the devices."""
        if not (self._takes_any and isinstance(self._feed, CachedFeed)):
            return self._batches
        rows, number = tf.TensorSpec((None, self._replicas, None), source.dtype), tf.TensorSpec((), tf.int32)
        return self._batches.get_concrete_function(rows, number, number)

    def _run_on_workers(self, order: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.float32]]:
        workers, pending = WorkerPool(self._assembly.strategy), deque[Any]()
        for rows in order:
            source = self._feed.open(rows[np.newaxis])
            pending.append(workers.schedule(self._batches, source, tf.constant(0), tf.constant(1)))
            if len(pending) == CHUNKS_AHEAD * self._assembly.simultaneous_steps:
                yield workers.fetch(pending.popleft())[0]
        while pending:
            yield workers.fetch(pending.popleft())[0]

    def _run_batches(self, source: Any, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """The sums and values of ``count`` batches, float32 ``[count, sums]``."""
        strategy = self._assembly.strategy

        def measure(index: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            arguments = self._feed.arguments(source, first + index)
            measured = strategy.run(self._replica_batch, args=arguments)
            return index + 1, rows.write(index, tf.add_n(strategy.experimental_local_results(measured)))

        if not self._assembly.single_process:  # one batch at a time, which all workers reduce
            measured = strategy.run(self._replica_batch, args=self._feed.arguments(source, first))
            return strategy.reduce("SUM", measured, axis=None)[tf.newaxis]
        rows = tf.TensorArray(tf.float32, size=count, infer_shape=False)
        _, rows = tf.while_loop(lambda index, _: index < count, measure, (tf.constant(0), rows))
        return rows.stack()

    def _replica_batch(self, *arguments: Any) -> tf.Tensor:
        """The loss times the examples, their number, the states of the metrics, the baseline's and the report's sums.

        Last come the report's values of each example.
        """
        assembly, model = self._assembly, self._assembly.model
        batch = assembly.prepare(self._feed.examples(*arguments))
        if self._custom:
            return self._custom_batch(batch)
        weights = assembly.averaged_weights()
        outputs, losses = _call(model, batch.inputs, weights)
        loss, states = self._states.measure(batch, outputs, training=False, weights=weights, losses=losses)
        every = tf.ones([tf.shape(flatten(batch)[0])[0]])
        count = tf.reduce_sum(every)
        # Keras divides the whole loss by the number of replicas.
        own = tf.stack([mean_loss(loss) * assembly.replicas * count, count])
        own = tf.concat([own, pack_states(states)], axis=0)
        if self._baseline:
            own = tf.concat([own, self._baseline.measure(batch, outputs, every)], axis=0)
        if self._report is None:
            return own
        values, totals = self._report.measure(batch, outputs, every)
        return tf.concat([own, totals, self._in_own_slot(values)], axis=0)

    def _custom_batch(self, batch: Batch) -> tf.Tensor:
        """Call a custom ``test_step``; returns the examples, and its logs times the examples."""
        logs = self._assembly.model.test_step(keras.utils.pack_x_y_sample_weight(*batch))
        scalars = self._assembly.names.scalars(keras.tree.map_structure(tf.convert_to_tensor, logs or {}))
        self._logged = tuple(scalars)  # Python runs here once per trace
        count = tf.cast(tf.shape(flatten(batch)[0])[0], tf.float32)
        return tf.stack([count, *(tf.cast(value, tf.float32) * count for value in scalars.values())])

    def _in_own_slot(self, values: tf.Tensor) -> tf.Tensor:
        """A replica's values in its own slot, 0 in the others'; float32 ``[replicas * batch * width]``."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        own = tf.range(self._replicas)[:, tf.newaxis, tf.newaxis] == replica
        # Not a product, which would spread NaN to all slots.
        return tf.reshape(tf.where(own, values[tf.newaxis], tf.zeros_like(values)), [-1])

    def _named(self, results: dict[str, Any]) -> dict[str, float]:
        """Metrics by series name."""
        values = self._assembly.names.scalars(keras.tree.map_structure(np.asarray, dict(results)))
        return {name: float(value) for name, value in values.items()}


def validation_of(assembly: Assembly, device_memory: int | None) -> tuple[Validation | None, str]:
    """The validation of a run, or why it is impossible; neither if the plan or the data has none."""
    if assembly.plan.validation == "off" or assembly.dataset.validation is None:
        return None, ""
    validation = Validation(assembly, device_memory)
    problem = validation.problem()
    return (None if problem else validation), problem


def _call(
    model: keras.Model, inputs: Structure, weights: list[tuple[keras.Variable, tf.Tensor]]
) -> tuple[Structure, LayerLosses | None]:
    """Call a model with some weights replaced.

    Returns:
        Its outputs; and the losses of its layers with the replaced weights, ``None`` if none were replaced.
    """
    if not weights:
        return call_model(model, inputs, training=False), None
    replaced = {id(variable) for variable, _ in weights}
    others = [(each, each.value) for each in model.trainable_variables if id(each) not in replaced]
    with keras.StatelessScope(state_mapping=[*weights, *others], collect_losses=True):
        return call_model(model, inputs, training=False), layer_losses(model)


def _with_loss(metrics: dict[str, float]) -> dict[str, float]:
    """The metrics of a custom ``test_step``, with the sum of its losses if it has no ``loss``."""
    if "loss" in metrics or not any(name.endswith("loss") for name in metrics):
        return metrics
    return {"loss": float(main_loss(metrics)), **metrics}


def _largest_batch(assembly: Assembly, examples: Examples, device_memory: int | None) -> int:
    """The most examples of a batch on each replica."""
    most = min(MAX_BATCH, GROWTH * assembly.step_counts.per_replica_batch)
    outputs = sum(output_sizes(assembly.model))
    if not (assembly.on_gpu and device_memory and outputs and isinstance(examples, Split)):
        return most
    example = outputs + examples.nbytes // max(1, len(examples))
    return max(most, min(MAX_GPU_BATCH, int(GPU_MEMORY_SHARE * device_memory) // example))


def _feed(assembly: Assembly, examples: Examples, device_memory: int | None) -> Feed:
    if not isinstance(examples, Split):
        cluster = assembly.cluster
        worker = (cluster.index, len(cluster.workers)) if cluster else ()
        return StreamFeed(assembly.strategy, examples, assembly.devices[0], *worker)
    if assembly.coordinated:
        return WorkerDataFeed(examples, "validation")
    return choose_feed(assembly.strategy, examples, device_memory, may_cache=not assembly.resolved.streams_data)


def _report_for(assembly: Assembly) -> TaskReport:
    input_spec = input_spec_of(assembly.dataset, assembly.scale)
    return report_for(
        assembly.task,
        assembly.dataset,
        assembly.outputs,
        assembly.model.loss,
        scale=assembly.scale,
        limits=(input_spec.low, input_spec.high) if input_spec else None,
        output_names=getattr(assembly.model, "output_names", None) or (),
    )
