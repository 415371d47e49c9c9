"""The number of threads that compute one TensorFlow operation on a CPU (intra-op parallelism).

TensorFlow fixes it at its first operation, for the whole process.
"""

import os

import tensorflow as tf

from accel_engine.devices.host_probe import processors
from accel_engine.errors import UsageError

VARIABLE = "TF_NUM_INTRAOP_THREADS"
"""The environment variable with which a user sets the number; 0 stands for TensorFlow's own."""


def set_threads(count: int) -> None:
    """Set the number of threads, instead of the environment's; before TensorFlow's first operation.

    Raises:
        RuntimeError: TensorFlow has run an operation with another number.
    """
    tf.config.threading.set_intra_op_parallelism_threads(count)


def threads_of_user() -> int | None:
    """The number that the user has set in the environment; ``None`` if it is not set.

    Raises:
        UsageError: It is negative, with which TensorFlow aborts the process.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    try:
        count = int(text)
    except ValueError:
        return processors()  # as TensorFlow does
    if count < 0:
        raise UsageError(
            f"{VARIABLE} = {count} in the environment: must be at least 1, or 0 for TensorFlow's own number"
        )
    return count or processors()


def threads_in_use() -> int:
    """The number of threads of this process."""
    return tf.config.threading.get_intra_op_parallelism_threads() or threads_of_user() or processors()
