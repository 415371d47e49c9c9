"""How large the gradients of a step are."""

from collections.abc import Sequence

import tensorflow as tf


def global_norm(gradients: Sequence[tf.Tensor | tf.IndexedSlices | None], scale: tf.Tensor) -> tf.Tensor:
    """The L2 norm of all gradients together, as the optimizer sums them over replicas, before it clips them.

    Args:
        gradients: One replica's, in whose context this is called.
        scale: What the loss was multiplied with, so that float16 can hold them.

    Returns:
        float32 scalar, the same on all replicas; not finite where float16 could not hold one.
    """
    # Rows of an embedding that occur more than once in a batch have to be added up first.
    dense = [tf.cast(tf.convert_to_tensor(gradient), tf.float32) for gradient in gradients if gradient is not None]
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        dense = context.all_reduce(tf.distribute.ReduceOp.SUM, dense)
    return tf.linalg.global_norm(dense) / tf.cast(scale, tf.float32)
