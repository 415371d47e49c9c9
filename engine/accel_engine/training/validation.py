"""Trying the model on the validation examples: every one of them once, the last short batch too."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.assembly import Assembly
from accel_engine.training.feed import choose_feed
from accel_engine.training.loop import scaled

BATCH = 256
"""Examples a replica takes at a time; no gradients are kept, so that it may be larger than in training."""


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
        self._feed = choose_feed(assembly.strategy, split, device_memory)
        self._batch = tf.function(self._run_batch, reduce_retracing=True)

    def run(self) -> dict[str, float]:
        """Return the means over all examples: ``loss``, ``accuracy`` where it means something, the model's own."""
        model, replicas = self._assembly.model, self._assembly.replicas
        for metric in model.metrics:
            metric.reset_state()
        rows = np.arange(self._examples, dtype=np.int32)
        whole = self._examples // replicas * replicas
        # Whole batches by all replicas; the few that do not divide go round by themselves.
        total = self._sum(rows[:whole].reshape(-1, replicas).T)
        for row in rows[whole:]:
            total += self._sum(np.full((replicas, 1), row)) / replicas
        if self._assembly.own_train_step:
            return self._own_metrics()
        loss, correct, count = total
        means = {"loss": float(loss / count)}
        if self._assembly.classifies:
            means["accuracy"] = float(correct / count)
        return self._own_metrics() | means

    def _sum(self, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Sums of loss, of right answers and of examples over rows ``[replicas, examples]``."""
        total = np.zeros(3)
        for first in range(0, rows.shape[1], BATCH):
            source = self._feed.open(rows[None, :, first : first + BATCH])
            total += self._batch(source).numpy()
        return total

    def _run_batch(self, source: Any) -> tf.Tensor:
        arguments = self._feed.arguments(source, tf.constant(0))
        return self._assembly.strategy.reduce(
            "SUM", self._assembly.strategy.run(self._replica_batch, args=arguments), axis=None
        )

    def _replica_batch(self, *arguments: Any) -> tf.Tensor:
        assembly = self._assembly
        model = assembly.model
        x, y = self._feed.examples(*arguments)
        inputs, targets = scaled(x, assembly.scale), assembly.labels.encode(y)
        if assembly.own_train_step:
            model.test_step((inputs, targets))
            return tf.zeros(3)
        outputs = model(inputs, training=False)
        count = tf.cast(tf.shape(y)[0], tf.float32)
        loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, training=False)
        if assembly.replicas > 1 and model.losses:
            loss -= tf.add_n(model.losses) * (1 - 1 / assembly.replicas)
        if self._has_own_metrics:
            model.compute_metrics(inputs, targets, outputs)
        correct = tf.reduce_sum(assembly.labels.correct(y, outputs)) if assembly.classifies else tf.constant(0.0)
        return tf.stack([tf.cast(loss, tf.float32) * assembly.replicas * count, correct, count])

    @property
    def _has_own_metrics(self) -> bool:
        """Whether the model was compiled with metrics; many replicas would need them merged, so one only."""
        return self._assembly.replicas == 1 and len(self._assembly.model.metrics) > 1

    def _own_metrics(self) -> dict[str, float]:
        """What the metrics that the model brings have come to."""
        if not (self._has_own_metrics or self._assembly.own_train_step):
            return {}
        results = self._assembly.model.get_metrics_result()
        return {name: float(value) for name, value in results.items() if np.ndim(value) == 0}
