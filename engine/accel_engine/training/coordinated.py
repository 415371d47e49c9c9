"""A loop whose steps are taken by workers, each without waiting for the others."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.assembly import Assembly
from accel_engine.training.loop import Loop, graph_of


class CoordinatedLoop(Loop):
    """Hands the steps of a chunk out to workers, with their examples, and waits for all of them.

    Weights lie on parameter servers: a worker reads them, and adds its gradients to whatever they are by
    then. With one worker, steps are those of one device. A step that a worker died over is handed out again.

    Args:
        assembly: Model, data and strategy.
    """

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(assembly, xla=False)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(assembly.strategy)
        self._one = graph_of(self._run_step, assembly)

    def trace(self, order: npt.NDArray[np.int32]) -> tf.Graph:
        """Trace the graph of a step, so that the first chunk does not have to, and give it."""
        with self._strategy.scope():
            return self._one.get_concrete_function(*self._batch(self._feed.open(order))).graph

    def _take(self, source: Any, first: int, count: int) -> npt.NDArray[np.float32]:
        del first  # the source knows
        measured = [self._coordinator.schedule(self._one, args=self._batch(source)) for _ in range(count)]
        self._coordinator.join()
        return np.stack([each.fetch() for each in measured])

    def _batch(self, source: Any) -> tuple[Any, ...]:
        return self._feed.arguments(source, tf.constant(0))

    def _run_step(self, *arguments: Any) -> tf.Tensor:
        return self._strategy.run(self._replica_step, args=arguments)
