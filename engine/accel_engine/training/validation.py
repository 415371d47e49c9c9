"""Trying the model on the validation examples: every one of them once, the last short batch too.

What it says of each is looked at in the same pass: every replica puts it into its own place of one row of
numbers, so that the sum over all replicas, which the means need anyway, is what all of them said.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.assembly import Assembly
from accel_engine.training.coordinated_loop import AHEAD
from accel_engine.training.evaluation_report import EvaluationReportBuilder, intake_of, why_not
from accel_engine.training.feed import Feed, choose_feed
from accel_engine.training.loop import graph_of, mean_loss, scaled
from accel_engine.training.worker_data import WorkerDataFeed
from accel_engine.training.worker_pool import WorkerPool

LARGEST_BATCH = 256
"""The most examples that a replica takes at a time, unless it trains on more."""

GROWTH = 4
"""How many times more of them than in training: no activations are kept for gradients, so they fit."""

_ACCURACIES = (
    keras.metrics.BinaryAccuracy,
    keras.metrics.CategoricalAccuracy,
    keras.metrics.SparseCategoricalAccuracy,
)
"""What Keras makes of ``metrics=["accuracy"]``."""


class Validation:
    """Measures an assembly's model on its validation data.

    Args:
        assembly: Model, data and strategy; it has validation data.
        device_memory: Memory in bytes of each device; ``None`` for the host's own.
    """

    def __init__(self, assembly: Assembly, device_memory: int | None) -> None:
        split = assembly.dataset.validation
        if split is None:
            raise ValueError("there is no validation data")
        self._assembly = assembly
        self._examples = len(split.y)
        self._size = max(
            assembly.schedule.per_replica_batch, min(LARGEST_BATCH, GROWTH * assembly.schedule.per_replica_batch)
        )
        # A TPU would compile for each shape, which takes longer than the examples that count for nothing.
        self._fills_up = assembly.on_tpu and not (assembly.own_train_step or self._has_own_metrics)
        if assembly.coordinated:
            self._feed: Feed = WorkerDataFeed(split, "validation")
        else:
            self._feed = choose_feed(assembly.strategy, split, device_memory)
        reason = why_not(assembly)
        self._looks = not reason
        self.examination = EvaluationReportBuilder(intake_of(assembly.dataset, assembly.scale), split, reason)
        self._batch = graph_of(self._run_batch, assembly, reduce_retracing=True)

    def run(self, between: Callable[[], None] = lambda: None) -> dict[str, float]:
        """Return the means over all examples: ``loss``, ``accuracy`` where it means something, the model's own.

        Args:
            between: Called between two batches; what it raises ends the validation.
        """
        for metric in self._assembly.model.metrics:
            metric.reset_state()
        total = np.zeros(3)
        for order, share in self._orders():
            for step, measured in enumerate(self._measured(order)):
                total += share * measured[:3]
                if self._looks:
                    self.examination.note(order[step], measured[3:], repeated=share < 1)
                between()
        if self._assembly.own_train_step:
            return self._own_metrics()
        loss, correct, count = total
        means = {"loss": float(loss / count)}
        if self._assembly.classifies:
            means["accuracy"] = float(correct / count)
        return self._own_metrics() | means

    def _orders(self) -> Iterator[tuple[npt.NDArray[np.int32], float]]:
        """Rows ``[steps, replicas, batch]`` that are all examples together, and what a step of them counts.

        Whole batches, then what is left of them, as much as every replica gets the same of. The last
        few, fewer than replicas, go to all of them, so that each counts for one replica's share (but
        fully in the metrics of a model with its own ``train_step``, which cannot be told so).

        Where batches are filled up, all are whole: after the last row comes the first again.
        """
        replicas = self._assembly.replicas
        if self._fills_up:
            steps = -(-self._examples // (replicas * self._size))
            filled = np.arange(steps * replicas * self._size, dtype=np.int32) % self._examples
            yield filled.reshape(steps, replicas, self._size), 1.0
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

    def _measured(self, order: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.float32]]:
        """What the model says of each batch of an order, one after the other."""
        if self._assembly.coordinated:
            yield from self._measured_by_workers(order)
            return
        source = self._feed.open(order)
        for step in range(len(order)):
            yield self._batch(source, tf.constant(step)).numpy()

    def _measured_by_workers(self, order: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.float32]]:
        workers, under_way = WorkerPool(self._assembly.strategy), deque[Any]()
        # Metrics of the model's own are variables that all workers would add to at the same time.
        most = 1 if self._has_own_metrics else AHEAD * self._assembly.simultaneous_steps
        for rows in order:
            under_way.append(workers.hand_out(self._batch, self._feed.open(rows[np.newaxis]), tf.constant(0)))
            if len(under_way) == most:
                yield workers.fetch(under_way.popleft())
        while under_way:
            yield workers.fetch(under_way.popleft())

    def _run_batch(self, source: Any, step: tf.Tensor) -> tf.Tensor:
        arguments = self._feed.arguments(source, step)
        return self._assembly.strategy.reduce(
            "SUM", self._assembly.strategy.run(self._replica_batch, args=(step, *arguments)), axis=None
        )

    def _replica_batch(self, step: tf.Tensor, *arguments: Any) -> tf.Tensor:
        assembly = self._assembly
        model = assembly.model
        x, y = self._feed.examples(*arguments)
        inputs, targets = scaled(x, assembly.scale), assembly.labels.encode(y)
        if assembly.own_train_step:
            model.test_step((inputs, targets))
            return tf.zeros(3)
        outputs = model(inputs, training=False)
        counts = self._counts(step, y)
        count = tf.reduce_sum(counts)
        # Keras takes the mean over the whole batch, whatever the weights.
        weights = counts * tf.cast(tf.size(counts), tf.float32) / tf.maximum(count, 1.0) if self._fills_up else None
        loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=False)
        if self._has_own_metrics:
            model.compute_metrics(inputs, targets, outputs)
        right = assembly.labels.correct(y, outputs) if assembly.classifies else tf.zeros_like(counts)
        # Keras divides all of the loss by the number of replicas.
        total = tf.cast(mean_loss(loss) * assembly.replicas, tf.float32) * count
        sums = tf.stack([total, tf.reduce_sum(right * counts), count])
        return tf.concat([sums, self._said(y, outputs)], axis=0) if self._looks else sums

    def _said(self, y: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """What there is to note of a replica's batch in its place, 0 in all others: float32, flat."""
        noted = self._assembly.labels.judged(y, outputs)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        mine = tf.range(self._assembly.replicas)[:, tf.newaxis, tf.newaxis] == replica
        # Not a product: what is not a number would be everybody's.
        return tf.reshape(tf.where(mine, noted[tf.newaxis], tf.zeros_like(noted)), [-1])

    def _counts(self, step: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """1 for each example of a replica's batch, 0 for one that only fills it up; float32 ``[batch]``."""
        if not self._fills_up:
            return tf.ones_like(y, tf.float32)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        first = (step * self._assembly.replicas + replica) * self._size
        return tf.cast(first + tf.range(self._size) < self._examples, tf.float32)

    @property
    def _has_own_metrics(self) -> bool:
        """Whether the model was compiled with metrics; many replicas would need them merged, so one only."""
        return self._assembly.replicas == 1 and len(self._assembly.model.metrics) > 1

    def _own_metrics(self) -> dict[str, float]:
        """What the metrics that the model brings have come to."""
        assembly = self._assembly
        if not (self._has_own_metrics or assembly.own_train_step):
            return {}
        results = dict(assembly.model.get_metrics_result())
        if not assembly.own_train_step and assembly.classifies and "accuracy" in results and not self._has_accuracy:
            results["model_accuracy"] = results.pop("accuracy")
            assembly.names.add_note(
                "the model's own metric accuracy is recorded as model_accuracy: "
                "accuracy is the fraction of correct predictions"
            )
        values = assembly.names.scalars(keras.tree.map_structure(np.asarray, results))
        return {name: float(value) for name, value in values.items()}

    @property
    def _has_accuracy(self) -> bool:
        """Whether what the model calls accuracy is Keras' own, which is what the run calls so."""
        metrics = [metric for each in self._assembly.model.metrics for metric in getattr(each, "metrics", [each])]
        return any(isinstance(metric, _ACCURACIES) for metric in metrics if metric.name == "accuracy")
