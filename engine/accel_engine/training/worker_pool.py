"""The workers that a coordinator hands work to, and what they have to say."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.worker_data import refusal


class WorkerPool:
    """Workers of a cluster that serve this process; each takes what has waited longest as soon as it is free.

    Args:
        strategy: The parameter servers' and workers'.
    """

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def hand_out(self, function: Any, *arguments: Any) -> Any:
        """Have a graph run by one of them, and anew by another where one dies over it; what :meth:`fetch` takes.

        Raises:
            DataError: A worker cannot read its examples.
            tf.errors.OpError: Something that was handed out before has failed.
        """
        try:
            return self._coordinator.schedule(function, args=arguments)
        except tf.errors.OpError as error:
            raise refusal(error) or error from None

    def fetch(self, result: Any) -> npt.NDArray[np.float32]:
        """Wait for what a graph gives back.

        Raises:
            DataError: A worker cannot read its examples.
            tf.errors.OpError: It has failed, or something else has, for which it was called off.
        """
        try:
            values: npt.NDArray[np.float32] = result.fetch()
        except tf.errors.OpError as error:
            cause = self._cause(error)
            raise refusal(cause) or cause from None
        return values

    def _cause(self, error: tf.errors.OpError) -> tf.errors.OpError:
        """What went wrong first; the rest was called off for it."""
        try:
            self._coordinator.join()
        except tf.errors.OpError as first:
            return first
        return error
