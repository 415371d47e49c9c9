"""Schedules graphs on a coordinator's workers."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.core.worker_data import data_error


class WorkerPool:
    """The workers of a coordinator; each runs the oldest scheduled graph as soon as it is free.

    Args:
        strategy: The parameter-server strategy.
    """

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def schedule(self, function: Any, *arguments: Any) -> Any:
        """Schedule a graph on any worker, or on another if it is lost; returns the argument of :meth:`fetch`.

        Raises:
            DataError: A worker cannot read its examples.
            tf.errors.OpError: A graph that was scheduled earlier has failed.
        """
        try:
            return self._coordinator.schedule(function, args=arguments)
        except tf.errors.OpError as error:
            raise data_error(error) or error from None

    def fetch(self, result: Any) -> npt.NDArray[np.float32]:
        """Wait for the result of a scheduled graph.

        Raises:
            DataError: A worker cannot read its examples.
            tf.errors.OpError: It has failed, or was cancelled because another graph failed.
        """
        try:
            values: npt.NDArray[np.float32] = result.fetch()
        except tf.errors.OpError as error:
            cause = self._cause(error)
            raise data_error(cause) or cause from None
        return values

    def _cause(self, error: tf.errors.OpError) -> tf.errors.OpError:
        """The first error; other graphs are cancelled because of it."""
        try:
            self._coordinator.join()
        except tf.errors.OpError as first:
            return first
        return error
