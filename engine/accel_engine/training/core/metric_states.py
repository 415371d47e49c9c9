"""Computes the loss and the metrics of a batch in a graph, without changing the metrics' variables.

A metric's state of one batch starts from zero, and states of batches and replicas are added, as ``tf.distribute`` adds
them. So the same sums give a step's metrics and a validation's, under every strategy and with XLA.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, only_array
from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.keras_support.model_structure import metrics_of
from accel_engine.private_names.keras_names import (
    LayerLosses,
    changed_losses,
    keeps_losses,
    kept_losses,
    mask_of,
    output_losses,
)
from accel_engine.run.store.series_names import SeriesNames

MAX_STATE = 64
"""Most values in the state of a metric that is recorded for each batch; larger ones, such as AUC, only for epochs."""

MAX_EPOCH_STATE = 1 << 13
"""Most values in the state of a metric that is recorded for each epoch, as each step gives all of its states. Larger
ones, such as a confusion matrix of 1,000 classes, are recorded for validations only."""


class MetricStates:
    """The metrics of a compiled model, and further ones, as functions of a vector of states.

    Args:
        model: Built and compiled; its metrics are built too.
        extra: Metrics of a single output that are not part of the model.
        names: Gives metrics their series names.
        limit: Metrics with larger states are left out; ``None`` for no limit.
    """

    def __init__(
        self, model: keras.Model, extra: Sequence[keras.Metric], names: SeriesNames, limit: int | None = None
    ) -> None:
        self._model = model
        self._extra = extra
        self._names = names
        every_metric = [*metrics_of(model), *extra]
        large = [metric for metric in every_metric if limit is not None and _size(metric.variables) > limit]
        self.left_out = tuple(metric.name for metric in large)
        hidden = {id(variable) for metric in large for variable in metric.variables}
        every = [*model.metrics_variables, *(variable for metric in extra for variable in metric.variables)]
        self._all = every
        self.variables = [variable for variable in every if id(variable) not in hidden]
        """The variables whose values are the states."""
        self._hidden_names = names_of(model, large) | {metric.name for metric in extra if metric in large}

    @property
    def width(self) -> int:
        """Number of values in all states."""
        return _size(self.variables)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the states."""
        return [tuple(variable.shape) for variable in self.variables]

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the metrics' series."""
        return tuple(self.results(self.unpack(tf.zeros([self.width]))))

    def measure(
        self,
        batch: Batch,
        outputs: Structure,
        *,
        training: bool,
        weights: Sequence[tuple[keras.Variable, tf.Tensor]] = (),
        losses: LayerLosses | None = None,
        share: tuple[tf.Tensor, float] | None = None,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The loss of a batch and the states of its metrics.

        Args:
            batch: Inputs, targets and weights as the loss takes them.
            outputs: The model's outputs.
            training: Whether it is a training step.
            weights: Other values of the model's weights, with which it was called.
            losses: The losses that ``add_loss`` and regularizers gave its layers with these weights.
            share: If outputs are masked, and the batch is only a part of a replica's: the number of unmasked tokens of
                all replicas, and the number of examples of all replicas over the number of this part.

        Returns:
            The loss of :func:`compute_loss`, divided by the number of replicas as Keras does it, and float32 tensors
            to be summed.
        """
        model = self._model
        given = [*((variable, tf.zeros(variable.shape, variable.dtype)) for variable in self._all), *weights]
        known = {id(variable) for variable, _ in given}
        outside = None if keeps_losses(model) else compute_loss(model, batch, outputs, training=training)
        shared = batch._replace(weights=_share_masks(batch.weights, outputs, share))
        with kept_losses(model, losses), keras.StatelessScope(state_mapping=given) as scope:
            loss = compute_loss(model, shared, outputs, training=training) if outside is None else outside
            model.compute_metrics(*batch[:2], outputs, batch.weights)
            update_metrics(self._extra, batch.targets, outputs)
            states = [tf.cast(scope.get_current_value(variable), tf.float32) for variable in self.variables]
        for variable in model.variables:  # changed by a custom compute_loss or compute_metrics
            if id(variable) not in known and (value := scope.get_current_value(variable)) is not None:
                variable.assign(value)
        return loss, self._by_examples(states, outputs)

    def _by_examples(self, states: list[tf.Tensor], outputs: Structure) -> list[tf.Tensor]:
        """Weigh the losses of outputs by a batch's examples, as Keras does only where the graph tells their number."""
        first = keras.tree.flatten(outputs)[0]
        if first.shape.rank is None or first.shape[0] is not None:
            return states
        count = tf.cast(tf.shape(first)[0], tf.float32)
        losses = {id(variable) for metric in output_losses(self._model) for variable in metric.variables}
        return [
            state * count if id(variable) in losses else state
            for variable, state in zip(self.variables, states, strict=True)
        ]

    def results(self, states: Sequence[tf.Tensor]) -> dict[str, Any]:
        """The metrics of summed states, by series name; without the loss."""
        values = dict(zip(map(id, self.variables), states, strict=True))
        mapping = [
            (variable, tf.cast(values[id(variable)], variable.dtype))
            for variable in self._all
            if id(variable) in values
        ]
        mapping += [(each, tf.zeros(each.shape, each.dtype)) for each in self._all if id(each) not in values]
        with keras.StatelessScope(state_mapping=mapping):
            found = {**self._model.get_metrics_result(), **{metric.name: metric.result() for metric in self._extra}}
            # In the scope, as a result may be the variable itself.
            found = keras.tree.map_structure(tf.convert_to_tensor, found)
        results = {name: value for name, value in found.items() if name != "loss" and name not in self._hidden_names}
        return self._names.scalars(results)

    def chosen_of(self, other: "MetricStates", states: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The states of these metrics among the states of more metrics of the same model."""
        own = {id(variable) for variable in self.variables}
        return [state for variable, state in zip(other.variables, states, strict=True) if id(variable) in own]

    def unpack(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """The states in a vector, float32 ``[width]``; see :func:`pack_states`."""
        sizes = [_size([variable]) for variable in self.variables]
        parts = tf.split(vector, sizes) if sizes else []
        return [tf.reshape(part, each.shape) for part, each in zip(parts, self.variables, strict=True)]


def pack_states(states: Sequence[tf.Tensor]) -> tf.Tensor:
    """Some states as a vector, float32 ``[width]``."""
    return tf.concat([tf.reshape(state, [-1]) for state in states], axis=0) if states else tf.zeros([0])


def compute_loss(model: keras.Model, batch: Batch, outputs: Structure, *, training: bool) -> tf.Tensor:
    """The model's loss of a batch, to differentiate as ``fit`` does: a vector if it has no reduction."""
    arguments: dict[str, Any] = {
        "x": batch.inputs,
        "y": batch.targets,
        "y_pred": outputs,
        "sample_weight": batch.weights,
    }
    if "training" in inspect.signature(model.compute_loss).parameters:  # since Keras 3.3
        arguments["training"] = training
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1 or not is_keras_defined(type(model).compute_loss):
        return model.compute_loss(**arguments)
    with changed_losses(model, partial(_of_replica, replicas)):
        return model.compute_loss(**arguments)


def _of_replica(replicas: int, loss: keras.losses.Loss) -> Callable[..., tf.Tensor]:
    """The loss of an output, as a share of all replicas' loss.

    Keras divides losses by the number of replicas, but not one value for a whole batch.
    """

    def share(targets: tf.Tensor, output: tf.Tensor, weights: tf.Tensor | None = None) -> tf.Tensor:
        value = loss(targets, output, weights)
        if weights is not None or mask_of(output) is not None:  # one for each example
            return value
        targets, output = (tf.cast(each, keras.config.floatx()) for each in (targets, output))
        return value if loss.call(targets, output).shape.rank else value / replicas

    return share


def mean_loss(loss: tf.Tensor) -> tf.Tensor:
    """A loss as a scalar, float32: the mean of one without a reduction, as ``fit`` reports it."""
    loss = tf.cast(loss, tf.float32)
    return tf.reduce_mean(loss) if loss.shape.rank else loss


def update_metrics(metrics: Sequence[keras.Metric], targets: Structure, outputs: Structure) -> None:
    """Add a batch to metrics of a single output, which may be in a dictionary, that are not part of the model."""
    targets, outputs = only_array(targets), only_array(outputs)
    for metric in metrics:
        metric.update_state(targets, outputs)  # Keras' own take targets without the last axis of a single unit


def own_metrics(model: keras.Model) -> list[keras.Metric]:
    """The metrics of a compiled model whose classes are not Keras' own."""
    return [metric for metric in metrics_of(model) if not is_keras_defined(type(metric).update_state)]


def not_additive(model: keras.Model, batch: Batch, outputs: Structure) -> list[str]:
    """Names of the user's own metrics whose states of batches cannot be added, such as a maximum.

    They are updated twice with the same batch, without changing their variables.

    Args:
        model: Built and compiled; its metrics are built too.
        batch: Any inputs and targets, as the loss takes them, to try the metrics with.
        outputs: Outputs for them.
    """
    own = own_metrics(model)
    for metric in own:
        metric.reset_state()
    variables = [variable for metric in model.metrics for variable in metric.variables]
    states = {id(variable): tf.zeros(variable.shape, variable.dtype) for variable in variables}

    def updated() -> dict[int, tf.Tensor]:
        mapping = [(variable, states[id(variable)]) for variable in variables]
        with kept_losses(model), keras.StatelessScope(state_mapping=mapping) as scope:
            model.compute_metrics(*batch[:2], outputs, None)
            return {id(variable): scope.get_current_value(variable) for variable in variables}

    def is_sum(variable: keras.Variable) -> bool:
        start, first, second = (
            np.asarray(each, np.float64) for each in (variable, once[id(variable)], twice[id(variable)])
        )
        return not start.any() and np.allclose(second, 2 * first, equal_nan=True)

    states = once = updated()
    twice = updated()
    return [metric.name for metric in own if not all(map(is_sum, metric.variables))]


def _share_masks(weights: Structure, outputs: Structure, share: tuple[tf.Tensor, float] | None) -> Structure:
    """Sample weights with which a masked loss is the mean over the unmasked tokens of all replicas.

    Keras takes the mean over a replica's own, and then over replicas, whose numbers of tokens differ.
    """
    context, mask = tf.distribute.get_replica_context(), mask_of(outputs)
    if context is None or context.num_replicas_in_sync == 1 or mask is None or not tf.is_tensor(outputs):
        return weights
    own = tf.reduce_sum(tf.cast(mask, tf.float32))
    if share is None:
        share = context.all_reduce(tf.distribute.ReduceOp.SUM, own), context.num_replicas_in_sync
    factor = own * share[1] / tf.maximum(share[0], 1.0)
    return factor * (tf.ones([tf.shape(mask)[0], 1]) if weights is None else tf.cast(weights, tf.float32))


def names_of(model: keras.Model, metrics: Sequence[keras.Metric]) -> set[str]:
    """The names of some metrics in the model's results: compiled ones have the name of their output before them."""
    names = set()
    for metric in model.metrics:
        inner = getattr(metric, "metrics", None) or []
        results = list(metric.result()) if inner and metrics else []
        pairs = zip(results, inner, strict=True) if len(results) == len(inner) else ()
        names |= {name for name, each in pairs if any(each is other for other in metrics)}
        names |= {metric.name} if any(metric is other for other in metrics) else set()
    return names


def _size(variables: Sequence[keras.Variable]) -> int:
    return sum(math.prod(variable.shape) for variable in variables)


class EpochStates:
    """Adds up the states of an epoch's steps; a checkpoint has them, so that a run continues in mid-epoch.

    Attributes:
        steps: The steps that are added.
        sums: The sums of their states, float64 ``[states]``; empty before the first step.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin another epoch."""
        self.steps = 0
        self.sums: npt.NDArray[np.float64] = np.zeros(0)

    def add(self, states: npt.NDArray[np.float64], steps: int) -> None:
        """Add the sum of the states of some steps, ``[states]``; the sums of other metrics are dropped."""
        if self.sums.shape != states.shape:
            self.clear()
        self.sums = self.sums + states if self.steps else states
        self.steps += steps

    @property
    def stored(self) -> npt.NDArray[np.float64]:
        """The values for a checkpoint: the steps and the sums, ``[1 + states]``."""
        return np.array([self.steps, *self.sums], np.float64)

    def restore(self, stored: Sequence[float]) -> None:
        """Continue from what a checkpoint has stored."""
        self.steps, self.sums = int(stored[0]), np.array(stored[1:], np.float64)
