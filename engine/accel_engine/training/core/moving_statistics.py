"""Gives all replicas the same moving statistics, such as the means of batch normalization."""

from collections.abc import Callable

import tensorflow as tf

from accel_engine.training.core.assembly import Assembly


class MovingStatistics:
    """The statistics that each replica updates for itself in a step, from the examples of its share of a batch.

    Keras leaves them different, and saves the first replica's. With their mean on all replicas, a validation
    measures the model that is saved, and a run that continues from a checkpoint has the values of one that was not
    interrupted. Training does not read them. Statistics of frozen layers are the same everywhere, and keep every bit.

    Args:
        assembly: Model and strategy.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._strategy = assembly.strategy
        several = assembly.replicas > 1 and not assembly.coordinated
        central = isinstance(assembly.strategy, tf.distribute.experimental.CentralStorageStrategy)
        self._variables = [
            variable
            for variable in (assembly.model.non_trainable_variables if several and not central else ())
            if variable.value.dtype.is_floating
            and variable.value.aggregation == tf.VariableAggregation.NONE
            and not variable.value.trainable  # as it was created: a frozen weight is not a statistic
        ]
        self._means = tf.function(self._mean_of_replicas, autograph=False)

    def share(self) -> None:
        """Replace the statistics of each replica by the mean over all; every worker must call it."""
        if not self._variables:
            return
        means = self._means()
        with self._strategy.scope():
            for variable, mean in zip(self._variables, means, strict=True):
                variable.assign(mean)

    def _mean_of_replicas(self) -> list[tf.Tensor]:
        means = self._means_of(lambda: [tf.identity(variable.value) for variable in self._variables])
        # The mean of three equal numbers may differ from them by rounding, which this corrects.
        rest = self._means_of(lambda: [each.value - mean for each, mean in zip(self._variables, means, strict=True)])
        return [mean + more for mean, more in zip(means, rest, strict=True)]

    def _means_of(self, values: Callable[[], list[tf.Tensor]]) -> list[tf.Tensor]:
        return [self._strategy.reduce("MEAN", each, axis=None) for each in self._strategy.run(values)]
