"""Validates a model on every validation example, including the last partial batch.

The predictions are collected in the same pass: every replica writes its own into a vector that is zero elsewhere, so
that the sum over all replicas, which the means need anyway, contains the predictions of all.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import Feed, choose_feed
from accel_engine.training.core.loop import graph_of
from accel_engine.training.core.step import mean_loss, scaled
from accel_engine.training.core.worker_data import WorkerDataFeed
from accel_engine.training.distributed.coordinated_loop import CHUNKS_AHEAD
from accel_engine.training.distributed.worker_pool import WorkerPool
from accel_engine.training.evaluation.evaluation_report import (
    EvaluationReportBuilder,
    input_spec_of,
    unavailable_reason,
)

MAX_BATCH = 256
"""The largest per-replica batch, unless training uses a larger one."""

GROWTH = 4
"""Batch size relative to training: it fits in memory, as no activations are kept for gradients."""

_ACCURACIES = (
    keras.metrics.BinaryAccuracy,
    keras.metrics.CategoricalAccuracy,
    keras.metrics.SparseCategoricalAccuracy,
)
"""The classes that Keras creates for ``metrics=["accuracy"]``."""


class Validation:
    """Measures an assembly's model on its validation data.

    Args:
        assembly: Model, data and strategy, with validation data.
        device_memory: Memory of each device in bytes; ``None`` for host memory.
    """

    def __init__(self, assembly: Assembly, device_memory: int | None) -> None:
        split = assembly.dataset.validation
        if split is None:
            raise ValueError("there is no validation data")
        self._assembly = assembly
        self._examples = len(split.y)
        self._size = max(
            assembly.step_counts.per_replica_batch, min(MAX_BATCH, GROWTH * assembly.step_counts.per_replica_batch)
        )
        # A TPU would compile for each batch shape, which takes longer than computing padding.
        self._pads_batches = assembly.on_tpu and not (assembly.has_custom_train_step or self._has_custom_metrics)
        if assembly.coordinated:
            self._feed: Feed = WorkerDataFeed(split, "validation")
        else:
            self._feed = choose_feed(assembly.strategy, split, device_memory)
        reason = unavailable_reason(assembly)
        self._records_predictions = not reason
        self.report_builder = EvaluationReportBuilder(input_spec_of(assembly.dataset, assembly.scale), split, reason)
        self._batch = graph_of(self._run_batch, assembly, reduce_retracing=True)

    def run(self, between_batches: Callable[[], None] = lambda: None) -> dict[str, float]:
        """Return the means over all examples: ``loss``, ``accuracy`` of a classifier, the model's own metrics.

        Args:
            between_batches: Called between two batches; what it raises ends the validation.
        """
        for metric in self._assembly.model.metrics:
            metric.reset_state()
        total = np.zeros(3)
        for order, weight in self._orders():
            for step, sums in enumerate(self._run_order(order)):
                total += weight * sums[:3]
                if self._records_predictions:
                    self.report_builder.add_batch(order[step], sums[3:], repeated=weight < 1)
                between_batches()
        if self._assembly.has_custom_train_step:
            return self._own_metrics()
        loss, correct, count = total
        means = {"loss": float(loss / count)}
        if self._assembly.is_classifier:
            means["accuracy"] = float(correct / count)
        return self._own_metrics() | means

    def _orders(self) -> Iterator[tuple[npt.NDArray[np.int32], float]]:
        """Yield row numbers ``[steps, replicas, batch]`` that cover all examples, and the weight of their steps.

        Whole batches come first, then one partial batch of equal size on every replica. The last examples, fewer than
        replicas, go to all of them with the weight ``1 / replicas`` (but with the weight 1 in the metrics of a model
        with a custom ``train_step``).

        Where batches are padded, all are whole: the rows are repeated from the first.
        """
        replicas = self._assembly.replicas
        if self._pads_batches:
            steps = -(-self._examples // (replicas * self._size))
            padded = np.arange(steps * replicas * self._size, dtype=np.int32) % self._examples
            yield padded.reshape(steps, replicas, self._size), 1.0
            return
        rows = np.arange(self._examples, dtype=np.int32)
        steps = self._examples // (replicas * self._size)
        whole, rest = np.split(rows, [steps * replicas * self._size])
        if steps:
            yield whole.reshape(steps, replicas, self._size), 1.0
        shared, last = np.split(rest, [len(rest) // replicas * replicas])
        if len(shared):
            yield shared.reshape(1, replicas, -1), 1.0
        if len(last):
            yield np.repeat(last, replicas).reshape(-1, replicas, 1), 1.0 / replicas

    def _run_order(self, order: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the sums and predictions of each batch of an order."""
        if self._assembly.coordinated:
            yield from self._run_order_on_workers(order)
            return
        source = self._feed.open(order)
        for step in range(len(order)):
            yield self._batch(source, tf.constant(step)).numpy()

    def _run_order_on_workers(self, order: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.float32]]:
        workers, pending = WorkerPool(self._assembly.strategy), deque[Any]()
        # The model's own metrics are variables, which workers must not update at the same time.
        most = 1 if self._has_custom_metrics else CHUNKS_AHEAD * self._assembly.simultaneous_steps
        for rows in order:
            pending.append(workers.schedule(self._batch, self._feed.open(rows[np.newaxis]), tf.constant(0)))
            if len(pending) == most:
                yield workers.fetch(pending.popleft())
        while pending:
            yield workers.fetch(pending.popleft())

    def _run_batch(self, source: Any, step: tf.Tensor) -> tf.Tensor:
        arguments = self._feed.arguments(source, step)
        return self._assembly.strategy.reduce(
            "SUM", self._assembly.strategy.run(self._replica_batch, args=(step, *arguments)), axis=None
        )

    def _replica_batch(self, step: tf.Tensor, *arguments: Any) -> tf.Tensor:
        assembly = self._assembly
        model = assembly.model
        x, y = self._feed.examples(*arguments)
        inputs, targets = scaled(x, assembly.scale), assembly.label_encoding.encode(y)
        if assembly.has_custom_train_step:
            model.test_step((inputs, targets))
            return tf.zeros(3)
        outputs = model(inputs, training=False)
        mask = self._example_mask(step, y)
        count = tf.reduce_sum(mask)
        # Keras divides by the size of the whole batch, whatever the weights.
        weights = mask * tf.cast(tf.size(mask), tf.float32) / tf.maximum(count, 1.0) if self._pads_batches else None
        loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=False)
        if self._has_custom_metrics:
            model.compute_metrics(inputs, targets, outputs)
        correct = assembly.label_encoding.correct(y, outputs) if assembly.is_classifier else tf.zeros_like(mask)
        # Keras divides the whole loss by the number of replicas.
        total = tf.cast(mean_loss(loss) * assembly.replicas, tf.float32) * count
        sums = tf.stack([total, tf.reduce_sum(correct * mask), count])
        return tf.concat([sums, self._own_predictions(y, outputs)], axis=0) if self._records_predictions else sums

    def _own_predictions(self, y: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """A replica's predictions in its own slot, 0 in the others'; float32 ``[replicas * batch * 3]``."""
        predictions = self._assembly.label_encoding.predictions(y, outputs)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        own = tf.range(self._assembly.replicas)[:, tf.newaxis, tf.newaxis] == replica
        # Not a product, which would spread NaN to all slots.
        return tf.reshape(tf.where(own, predictions[tf.newaxis], tf.zeros_like(predictions)), [-1])

    def _example_mask(self, step: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """1 for each example of a replica's batch, 0 for padding; float32 ``[batch]``."""
        if not self._pads_batches:
            return tf.ones_like(y, tf.float32)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        first = (step * self._assembly.replicas + replica) * self._size
        return tf.cast(first + tf.range(self._size) < self._examples, tf.float32)

    @property
    def _has_custom_metrics(self) -> bool:
        """Whether the model has compiled metrics; only with one replica, as several would have to merge them."""
        return self._assembly.replicas == 1 and len(self._assembly.model.metrics) > 1

    def _own_metrics(self) -> dict[str, float]:
        """The results of the model's own metrics."""
        assembly = self._assembly
        if not (self._has_custom_metrics or assembly.has_custom_train_step):
            return {}
        results = dict(assembly.model.get_metrics_result())
        if (
            not assembly.has_custom_train_step
            and assembly.is_classifier
            and "accuracy" in results
            and not self._has_accuracy
        ):
            results["model_accuracy"] = results.pop("accuracy")
            assembly.names.add_note(
                "the model's metric accuracy is recorded as model_accuracy: "
                "accuracy is the fraction of correct predictions"
            )
        values = assembly.names.scalars(keras.tree.map_structure(np.asarray, results))
        return {name: float(value) for name, value in values.items()}

    @property
    def _has_accuracy(self) -> bool:
        """Whether the model's metric ``accuracy`` is one of Keras', with the same meaning as the run's."""
        metrics = [metric for each in self._assembly.model.metrics for metric in getattr(each, "metrics", [each])]
        return any(isinstance(metric, _ACCURACIES) for metric in metrics if metric.name == "accuracy")
