"""Datasets of ``tf.data`` whose end does not wait for the thread that tunes their pipelines."""

import tensorflow as tf


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset with a fixed degree of parallelism; give it to each step, instead of ``tf.data.AUTOTUNE``.

    For what follows from tuning, see :class:`accel_engine.data.python_source.tf_data_stream.FreedIterator`.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
