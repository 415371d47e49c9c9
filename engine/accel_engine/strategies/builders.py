"""The ``tf.distribute`` form of every strategy in the catalogue.

Each builder takes TensorFlow's names of the logical devices to train on, such as ``("GPU:0",)``.
"""

import tensorflow as tf


def default(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    """TensorFlow's default strategy, pinned to the device when it is not the first."""
    if devices[0].endswith(":0"):
        return tf.distribute.get_strategy()
    return one_device(devices)


def one_device(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    """All variables and all computation on one device."""
    return tf.distribute.OneDeviceStrategy(f"/{devices[0]}")


def mirrored(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    """A copy of the model on every device; NCCL sums gradients on GPUs, plain copies on CPUs."""
    reduction = None if devices[0].startswith("GPU") else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy([f"/{name}" for name in devices], cross_device_ops=reduction)
