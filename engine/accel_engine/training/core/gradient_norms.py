"""The norms of a step's gradients: of all together, and of each layer."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from accel_engine.plan import Plan
from accel_engine.run.store.series_names import GRADIENT_NORM, MICRO_BATCH_NORM, series_name

MAX_LAYERS = 32
"""Layers with a series each: of a deeper model, evenly spaced ones with the first and the last."""

Gradients = Sequence[tf.Tensor | tf.IndexedSlices | None]


class GradientNorms:
    """The norms that a plan asks for.

    Args:
        plan: The plan.
        model: Built.

    Attributes:
        names: Names of the series.
        of_micro_batches: Whether the norm of the gradients of one micro-batch is asked for, too: with the norm of the
            whole batch it tells how noisy gradients are.
    """

    def __init__(self, plan: Plan, model: keras.Model) -> None:
        self._layers = layers_of(model) if plan.gradient_norm == "layers" else {}
        total = () if plan.gradient_norm == "off" else (GRADIENT_NORM,)
        self.of_micro_batches = bool(total) and (plan.micro_batches or 1) > 1
        parts = (MICRO_BATCH_NORM,) if self.of_micro_batches else ()
        self.names: tuple[str, ...] = (*total, *self._layers, *parts)

    def measure(self, gradients: Gradients, scale: tf.Tensor, square: tf.Tensor | None = None) -> list[tf.Tensor]:
        """The L2 norms, summed over replicas as the optimizer does, before clipping.

        Args:
            gradients: The gradients of the replica in whose context this is called, one for each trainable variable.
            scale: The loss scale, which keeps float16 gradients from underflowing.
            square: The mean of :meth:`square` over this replica's micro-batches, if it is asked for.

        Returns:
            float32 scalars, the same on all replicas; not finite where a float16 gradient overflowed.
        """
        if not self.names:
            return []
        dense = _summed_over_replicas(gradients)
        groups = [dense, *([dense[index] for index in indices] for indices in self._layers.values())]
        factor = tf.cast(scale, tf.float32)
        norms = [_norm([each for each in group if each is not None]) / factor for group in groups]
        return norms if square is None else [*norms, tf.sqrt(square) / factor]

    def square(self, gradients: Gradients) -> tf.Tensor:
        """The squared L2 norm of the gradients of a micro-batch, float32 scalar."""
        dense = [tf.cast(tf.convert_to_tensor(each), tf.float32) for each in gradients if each is not None]
        return tf.square(_norm(dense))


def layers_of(model: keras.Model) -> dict[str, list[int]]:
    """The indices of the trainable variables of each layer, by the name of its series, in the order of the model."""
    paths: dict[str, list[int]] = {}
    for index, variable in enumerate(model.trainable_variables):
        # Keras puts the name of a model that was built late before the names of its layers.
        path = variable.path.removeprefix(f"{model.name}/").rpartition("/")[0]
        paths.setdefault(path or "model", []).append(index)
    count = len(paths)
    chosen = {round(part * (count - 1) / (MAX_LAYERS - 1)) for part in range(MAX_LAYERS)}
    kept = [path for index, path in enumerate(paths) if count <= MAX_LAYERS or index in chosen]
    found: dict[str, list[int]] = {}
    for path in kept:
        plain = f"{GRADIENT_NORM}_{series_name(path)}"
        name, number = plain, 1
        while name in found:  # "a/b" and "a_b"
            number += 1
            name = f"{plain}_{number}"
        found[name] = paths[path]
    return found


def _summed_over_replicas(gradients: Gradients) -> list[tf.Tensor | None]:
    """The sum over replicas of each gradient, float32."""
    # Rows of an embedding that occur more than once in a batch are summed first.
    dense = [tf.cast(tf.convert_to_tensor(gradient), tf.float32) for gradient in gradients if gradient is not None]
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        dense = context.all_reduce(tf.distribute.ReduceOp.SUM, dense)
    sums = iter(dense)
    return [None if gradient is None else next(sums) for gradient in gradients]


def _norm(gradients: list[tf.Tensor]) -> tf.Tensor:
    """The L2 norm of some gradients; 0 of a layer that the loss does not depend on."""
    return tf.linalg.global_norm(gradients) if gradients else tf.constant(0.0)
