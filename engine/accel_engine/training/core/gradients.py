"""Computes the norm of a step's gradients."""

from collections.abc import Sequence

import tensorflow as tf


def global_norm(gradients: Sequence[tf.Tensor | tf.IndexedSlices | None], scale: tf.Tensor) -> tf.Tensor:
    """The L2 norm of all gradients, summed over replicas as the optimizer does, before clipping.

    Args:
        gradients: Those of the replica in whose context this is called.
        scale: The loss scale, which keeps float16 gradients from underflowing.

    Returns:
        float32 scalar, the same on all replicas; not finite where a float16 gradient overflowed.
    """
    # Rows of an embedding that occur more than once in a batch are summed first.
    dense = [tf.cast(tf.convert_to_tensor(gradient), tf.float32) for gradient in gradients if gradient is not None]
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        dense = context.all_reduce(tf.distribute.ReduceOp.SUM, dense)
    return tf.linalg.global_norm(dense) / tf.cast(scale, tf.float32)
