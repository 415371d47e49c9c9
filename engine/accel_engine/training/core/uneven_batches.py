"""Shares a batch among replicas that cannot divide it evenly, so that the step is the same as on one device.

All replicas take as many examples, as one graph runs on all of them. Each takes its even share, and at the end one of
the examples that are left. Some of these are on several replicas: there they count by a weight, so that each counts
once in the loss, the gradients and the metrics. So no example is made up, and batch normalization sees real ones only,
none of them twice on one replica.
"""

from dataclasses import dataclass

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Examples, Split
from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.keras_support.divisibility import is_mean_over_examples, is_sum_over_examples
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.step_counts import StepCounts
from accel_engine.private_names.keras_graph_names import rows_of
from accel_engine.private_names.keras_names import mask_of
from accel_engine.training.core.metric_states import MetricStates


@dataclass(frozen=True, slots=True)
class UnevenBatch:
    """A batch that replicas cannot divide evenly."""

    examples: int
    """Its examples."""
    replicas: int
    """Number of replicas."""

    @property
    def even(self) -> int:
        """The examples of each replica that no other one has."""
        return self.examples // self.replicas

    @property
    def share(self) -> int:
        """The examples of each replica."""
        return self.even + 1

    @property
    def weights(self) -> list[float]:
        """The weight of the last example of each replica, 0 to 1."""
        left = self.examples % self.replicas
        return [1.0 / len(range(replica % left, self.replicas, left)) for replica in range(self.replicas)]

    def weight(self) -> tf.Tensor:
        """By how much this replica's last example counts, a float32 scalar; in a replica's graph."""
        return tf.constant(self.weights)[tf.distribute.get_replica_context().replica_id_in_sync_group]


def uneven_batch(examples: int, replicas: int) -> UnevenBatch | None:
    """How replicas share a batch; ``None`` if they divide it evenly."""
    return UnevenBatch(examples, replicas) if examples % replicas else None


def replica_positions(examples: int, replicas: int) -> npt.NDArray[np.int32]:
    """The positions in a batch of the examples of each replica, int32 ``[replicas, share]``."""
    even, left = divmod(examples, replicas)
    own = np.arange(even * replicas, dtype=np.int32).reshape(replicas, even)
    if not left:
        return own
    last = even * replicas + np.arange(replicas, dtype=np.int32) % left
    return np.concatenate([own, last[:, np.newaxis]], axis=1)


class UnevenMeasure:
    """Measures a replica's part of an uneven batch, of which the last example may count by less than 1.

    Args:
        model: Built and compiled.
        states: Measures its loss and metrics.
    """

    def __init__(self, model: keras.Model, states: MetricStates) -> None:
        self._model, self._states = model, states

    def measure(
        self, batch: Batch, outputs: Structure, uneven: UnevenBatch, weight: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The loss, whose gradients are added over replicas, and the states of the metrics; in a training step.

        A loss that is not a mean or sum over examples is computed over all the replica's examples.

        Args:
            batch: The replica's examples, or a micro-batch of them, as the loss takes them.
            outputs: The model's outputs for them.
            uneven: The batch of all replicas.
            weight: By how much the last example counts, a scalar.
        """
        size = int(keras.tree.flatten(outputs)[0].shape[0])
        parts = [(slice(0, size - 1), tf.constant(1.0)), (slice(size - 1, size), weight)]
        parts = parts[1:] if size == 1 else parts
        mask = mask_of(outputs) if tf.is_tensor(outputs) else None
        tokens = None if mask is None else self._tokens(mask, parts)
        losses, sums = [], []
        for own, counts in parts:
            rows = own.stop - own.start
            share = None if tokens is None else (tokens, uneven.examples / rows)
            some, their = _rows(batch, outputs, own)
            loss, states = self._states.measure(some, their, training=True, share=share)
            losses.append(tf.cast(rows * counts, loss.dtype) * loss)
            sums.append([counts * state for state in states])
        states = [tf.add_n(each) for each in zip(*sums, strict=True)]
        if is_mean_over_examples(self._model):
            # Keras has divided the mean by the number of replicas.
            return tf.add_n(losses) * (uneven.replicas * uneven.share / (uneven.examples * size)), states
        every, _ = self._states.measure(batch, outputs, training=True)
        if not is_sum_over_examples(self._model):
            return every, states
        # The difference is the last example, without the regularization.
        first = losses[0] / (size - 1) if size > 1 else self._regularization(uneven, every)
        return first + tf.cast(weight, every.dtype) * (every - first), states

    @staticmethod
    def _tokens(mask: tf.Tensor, parts: list[tuple[slice, tf.Tensor]]) -> tf.Tensor:
        """The unmasked tokens of all replicas."""
        own = tf.add_n([counts * tf.reduce_sum(tf.cast(mask[rows], tf.float32)) for rows, counts in parts])
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, own)

    def _regularization(self, uneven: UnevenBatch, like: tf.Tensor) -> tf.Tensor:
        penalties = [tf.cast(each, like.dtype) for each in self._model.losses]
        return tf.add_n(penalties) / uneven.replicas if penalties else tf.zeros_like(like)


def _rows(batch: Batch, outputs: Structure, own: slice) -> tuple[Batch, Structure]:
    """Some rows of a batch and of a model's outputs for it."""

    def rows(array: tf.Tensor) -> tf.Tensor:
        return array[own]

    return map_structure(rows, batch), keras.tree.map_structure(lambda output: rows_of(output, rows), outputs)


def batch_notes(resolved: ResolvedPlan, train: Examples) -> list[str]:
    """Warnings for the user on how examples are put in batches.

    Args:
        resolved: The plan, with its steps.
        train: The training examples.
    """
    step_counts, wanted, cluster = resolved.step_counts, resolved.plan.batch_size, resolved.cluster
    assert step_counts is not None  # noqa: S101 (the caller has counted them)
    notes, replicas = [], step_counts.replicas
    if isinstance(train, Split) and wanted > len(train):
        taken = step_counts.global_batch
        every = f"all {taken}" if taken == len(train) else f"{taken} of {len(train)}"
        notes.append(f"the batch size {wanted} is larger than the data: a step takes {every} examples")
    elif isinstance(train, Split) and step_counts.global_batch < wanted:
        notes.append(
            f"the batch size {wanted} is not divisible by {replicas} replicas: each takes "
            f"{step_counts.per_replica_batch}, so the global batch is {step_counts.global_batch}"
        )
    if cluster is not None and cluster.coordinated and len(cluster.workers) > 1:
        notes.append(
            f"{len(cluster.workers)} workers run steps of {step_counts.global_batch} examples asynchronously, "
            "on weights that the others are updating"
        )
    return notes


def uneven_note(step_counts: StepCounts, train: Examples, inexact: str) -> list[str]:
    """A warning if replicas cannot divide a batch evenly, and examples that several have count on each.

    Args:
        step_counts: The batches.
        train: The training examples.
        inexact: Why they cannot count once; empty if they can.
    """
    replicas = step_counts.replicas
    may_be_uneven = step_counts.last_batch % replicas if isinstance(train, Split) else replicas > 1
    if not inexact or not may_be_uneven:
        return []
    last = f"the last batch of {step_counts.last_batch}"
    which, cure = (last, "; last_batch = drop leaves it out") if isinstance(train, Split) else ("each batch", "")
    return [
        f"{replicas} replicas cannot divide {which} evenly: some examples are on several of them, and count on each, "
        f"as {inexact}{cure}"
    ]
