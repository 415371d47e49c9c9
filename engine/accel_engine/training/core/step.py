"""Traces one training step of a replica, from raw examples to sums, of which the step's series are computed."""

import functools
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.devices.host_probe import processors
from accel_engine.errors import ModelError
from accel_engine.keras_support.model_structure import metrics_of
from accel_engine.models.model_call import call_model
from accel_engine.private_names.keras_names import LayerLosses
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.gradient_norms import GradientNorms
from accel_engine.training.core.metric_states import (
    MAX_EPOCH_STATE,
    MAX_STATE,
    MetricStates,
    mean_loss,
    names_of,
    own_metrics,
    pack_states,
)
from accel_engine.training.core.micro_batches import accumulate_gradients, part_sizes, slices, weighted_means
from accel_engine.training.core.pipeline.pipeline_gradients import Pipeline
from accel_engine.training.core.pipeline.stages import ModelStages
from accel_engine.training.core.pipeline.update_devices import beside_largest_input
from accel_engine.training.core.recipe.optimizer import clips_over_replicas
from accel_engine.training.core.rematerialization.recomputation import Tracing
from accel_engine.training.core.uneven_batches import UnevenBatch, UnevenMeasure


class Step:
    """Runs one optimizer update on a replica.

    Args:
        assembly: Model, data and strategy.
        micro_batches: Number of micro-batches of each whole batch.
    """

    def __init__(self, assembly: Assembly, micro_batches: int) -> None:
        self._assembly = assembly
        self._micro_batches = micro_batches
        self._norms = GradientNorms(assembly.plan, assembly.model)
        self._states = MetricStates(assembly.model, assembly.metrics, assembly.names, MAX_EPOCH_STATE)
        self._recorded = MetricStates(assembly.model, assembly.metrics, assembly.names, MAX_STATE)
        self._uneven = UnevenMeasure(assembly.model, self._states)
        self._replicas = assembly.strategy.num_replicas_in_sync
        self._clips_over_replicas = clips_over_replicas(assembly.plan, self._replicas)
        # Not by graph_of, whose lock may be held for seconds while another loop is traced: this calls no layers.
        self._results = tf.function(self._results_of, autograph=False)

    def run(self, raw: Batch, uneven: UnevenBatch | None = None) -> list[tf.Tensor]:
        """Update the weights by a replica's batch.

        Args:
            raw: Raw examples; with an augmentation, what :meth:`Assembly.prepare_training` made of them.
            uneven: The batch of all replicas, if they cannot divide it evenly.

        Returns:
            float32 tensors: sums over the batch, which are added over replicas and given to :meth:`series` and
            :meth:`states`.
        """
        gradients, measured = self._gradients(raw, uneven)
        square = measured.pop(1) if self._norms.of_micro_batches else None
        model = self._assembly.model
        if self._clips_over_replicas:
            gradients = mean_of_replicas(gradients)
        # before the optimizer updates the loss scale
        with beside_largest_input() if self._assembly.stages else nullcontext():
            norms = self._norms.measure(gradients, model.optimizer.scale_loss(tf.constant(1.0)), square)
            model.optimizer.apply(gradients, model.trainable_variables)
        return [*norms, *measured]

    def series(self, sums: Sequence[tf.Tensor]) -> dict[str, tf.Tensor]:
        """The series of a step, float32 scalars by name, from the sums over all replicas.

        The metrics are of the step's own batch.
        """
        own = [*self._norms.names, "loss"]
        values = {name: total / self._replicas for name, total in zip(own, sums, strict=False)}
        measured = self._recorded.results(self._recorded.chosen_of(self._states, sums[len(own) :]))
        return {"loss": values["loss"], **measured, **values}

    def states(self, sums: Sequence[tf.Tensor]) -> tf.Tensor:
        """The states of all metrics, float32 ``[states]``, to be added over steps and given to :meth:`metrics`."""
        return pack_states(sums[len(self._norms.names) + 1 :])

    def metrics(self, states: npt.NDArray[np.float64]) -> dict[str, float]:
        """The metrics over all examples of some steps, by series name, without the loss.

        Args:
            states: The sum of :meth:`states`, ``[states]``.
        """
        found = self._results(tf.constant(states, tf.float32))
        return {name: float(value) for name, value in found.items()}

    def _results_of(self, states: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):  # an accelerator may be taking the next steps
            return self._states.results(self._states.unpack(states))

    def unpack(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """The sums in a vector that was made by :func:`accel_engine.training.core.metric_states.pack_states`."""
        own = len(self._norms.names) + 1
        return [*tf.unstack(vector[:own], own), *self._states.unpack(vector[own:])]

    def _gradients(self, raw: Batch, uneven: UnevenBatch | None) -> tuple[list[Any], list[tf.Tensor]]:
        assembly, model = self._assembly, self._assembly.model
        sizes = part_sizes(self._micro_batches, assembly.step_counts.per_replica_batch, raw)
        # By how much each example counts; only the last one of an uneven batch may count by less than 1.
        counts = tf.concat([tf.ones([uneven.even]), [uneven.weight()]], axis=0) if uneven else None
        if assembly.stages is not None:
            return self._gradients_in_stages(assembly.stages, raw, sizes)
        compute = partial(self._compute_gradients, uneven)
        if not sizes:
            return compute((raw, counts))
        parallel = 1 if assembly.plan.micro_batches else processors()  # the plan's are to save memory
        of_parts = int(self._norms.of_micro_batches)
        shapes = [(), *[()] * of_parts, *self._states.shapes]
        found, parts = [], sum(sizes.values())
        for (size, count), examples in zip(sizes.items(), slices(sizes, (raw, counts)), strict=True):
            accumulate = accumulate_gradients(
                compute, model.trainable_variables, shapes, count, parallel_iterations=parallel
            )
            gradients, (loss, *sums) = accumulate(examples)
            squares = [each / parts for each in sums[:of_parts]]
            found.append((size * count, gradients, [loss / count, *squares, *sums[of_parts:]]))
        return weighted_means(found)

    def _gradients_in_stages(
        self, stages: ModelStages, raw: Batch, sizes: dict[int, int]
    ) -> tuple[list[Any], list[tf.Tensor]]:
        """The same as :meth:`_gradients` of a model in stages, with its micro-batches in flight."""
        assembly, model = self._assembly, self._assembly.model
        examples = flatten(raw)[0].shape[0]
        parts = list[tuple[Batch, float]]()
        for (size, count), own in zip(sizes.items(), slices(sizes, raw), strict=True) if sizes else ():
            for first in range(0, size * count, size):
                part = map_structure(lambda each, rows=slice(first, first + size): each[rows], own)
                parts.append((part, size / examples))
        ready = [
            (part if assembly.augmentation else assembly.prepare(part), share) for part, share in parts or [(raw, 1.0)]
        ]

        def measure(batch: Batch, outputs: Any, losses: LayerLosses) -> tuple[tf.Tensor, list[tf.Tensor]]:
            loss, states = self._states.measure(batch, outputs, training=True, losses=losses)
            return model.optimizer.scale_loss(loss), [mean_loss(loss), *states]

        square = self._norms.square if self._norms.of_micro_batches else None
        recomputed = Tracing(unseeded=assembly.unseeded) if assembly.plan.remat == "on" else None
        pipeline = Pipeline(stages, model.trainable_variables, measure, square, recomputed)
        gradients, measured = pipeline.gradients(ready)
        losses, *sums = zip(*measured, strict=True)
        loss = tf.add_n([share * each for (_, share), each in zip(ready, losses, strict=True)])
        squares = [tf.add_n(sums.pop(0)) / len(ready)] if square else []
        return gradients, [loss, *squares, *(tf.add_n(each) for each in sums)]

    def _compute_gradients(
        self, uneven: UnevenBatch | None, part: tuple[Batch, tf.Tensor | None]
    ) -> tuple[list[Any], list[tf.Tensor]]:
        """The gradients, and the loss, their squared norm if it is asked for, and the states of the metrics."""
        (raw, counts), model = part, self._assembly.model
        # An augmented batch is prepared before XLA compiles the step: see prepare_training.
        batch = raw if self._assembly.augmentation else self._assembly.prepare(raw)
        with tf.GradientTape() as tape:
            outputs = call_model(model, batch.inputs, training=True)
            # Keras divides it, regularization included, by the number of replicas, over which gradients are summed.
            if uneven is None or counts is None:
                loss, states = self._states.measure(batch, outputs, training=True)
            else:
                loss, states = self._uneven.measure(batch, outputs, uneven, counts[-1])
            objective = model.optimizer.scale_loss(loss)
        measured = mean_loss(loss)
        own = measured * self._replicas if self._replicas > 1 else measured
        gradients = tape.gradient(objective, model.trainable_variables)
        squares = [self._norms.square(gradients)] if self._norms.of_micro_batches else []
        return gradients, [own, *squares, *states]


class CustomStep:
    """Runs a custom ``train_step``, with metrics reset so that they are this step's, not running means.

    Args:
        assembly: Model, data and strategy.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._names: tuple[str, ...] = ()
        self._variables: tuple[keras.Variable, ...] = ()

    def run(self, raw: Batch, uneven: UnevenBatch | None = None) -> list[tf.Tensor]:
        """Call ``train_step``; returns the values of its logs, float32 scalars, and the states of its metrics."""
        del uneven  # an example that several replicas have counts on each: a note says so
        model = self._assembly.model
        for metric in model.metrics:
            metric.reset_state()
        batch = self._assembly.prepare(raw)
        logs = model.train_step(keras.utils.pack_x_y_sample_weight(*batch))
        scalars = self._assembly.names.scalars(keras.tree.map_structure(tf.convert_to_tensor, logs or {}))
        if not scalars:
            raise ModelError("the model's train_step returns nothing: return a dictionary with the loss")
        self._names = tuple(scalars)
        # Python runs here once per trace: only now has Keras created the metrics' variables.
        self._variables = tuple(model.metrics_variables)
        states = [tf.cast(tf.convert_to_tensor(variable.value), tf.float32) for variable in self._variables]
        return [*(tf.cast(value, tf.float32) for value in scalars.values()), *states]

    def unpack(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """The values in a vector; all states in one."""
        own, states = len(self._names), sum(math.prod(variable.shape) for variable in self._variables)
        return [*tf.unstack(vector[:own], own), tf.reshape(vector[own:], [states])]

    def series(self, sums: Sequence[tf.Tensor]) -> dict[str, tf.Tensor]:
        """The series of a step: the means over replicas."""
        replicas = self._assembly.strategy.num_replicas_in_sync
        values = {name: total / replicas for name, total in zip(self._names, sums, strict=False)}
        return {"loss": main_loss(values), **values}

    def states(self, sums: Sequence[tf.Tensor]) -> tf.Tensor:
        """See :meth:`Step.states`."""
        return pack_states(sums[len(self._names) :])

    def metrics(self, states: npt.NDArray[np.float64]) -> dict[str, float]:
        """The metrics that ``train_step`` returns, over all examples of some steps; see :meth:`Step.metrics`.

        Left out are metrics that it does not update, such as Keras' own of the loss, and metrics of other classes than
        Keras', whose states of steps may not be sums.
        """
        model, ends = self._assembly.model, np.cumsum([math.prod(each.shape) for each in self._variables])
        parts = np.split(states, ends[:-1]) if len(ends) else []
        sums = {id(each): part for each, part in zip(self._variables, parts, strict=True)}
        mapping = [(each, tf.cast(np.reshape(sums[id(each)], each.shape), each.dtype)) for each in self._variables]
        with keras.StatelessScope(state_mapping=mapping):
            found = keras.tree.map_structure(tf.convert_to_tensor, dict(model.get_metrics_result()))
        unused = [each for each in metrics_of(model) if not any(sums[id(own)].any() for own in each.variables)]
        left_out = names_of(model, [*own_metrics(model), *unused])
        scalars = self._assembly.names.scalars({name: each for name, each in found.items() if name not in left_out})
        return {name: float(value) for name, value in scalars.items() if name in self._names}


def step_of(assembly: Assembly, micro_batches: int) -> Step | CustomStep:
    """The step of an assembly's model."""
    return CustomStep(assembly) if assembly.has_custom_train_step else Step(assembly, micro_batches)


def main_loss(series: dict[str, Any]) -> Any:
    """The loss of a custom ``train_step``: ``loss``, ``total_loss``, or the sum of all losses, such as a GAN's.

    Raises:
        ModelError: There is no such series.
    """
    losses = [series[name] for name in ("loss", "total_loss") if name in series][:1] or [
        value for name, value in series.items() if name.endswith("loss")
    ]
    if not losses:
        raise ModelError(f"the model's train_step returns {', '.join(series)} but no loss")
    return sum(losses[1:], losses[0])


def mean_of_replicas(gradients: Sequence[tf.Tensor | tf.IndexedSlices | None]) -> list[tf.Tensor | None]:
    """The mean over replicas of each gradient, which is the same on all of them.

    The optimizer clips it to ``1 / replicas`` of the plan's limit and adds it up over replicas: as if the sum of the
    gradients was clipped to the limit.
    """
    context = tf.distribute.get_replica_context()
    # Rows of an embedding that occur more than once in a batch are summed first.
    dense = [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
    means = iter(context.all_reduce(tf.distribute.ReduceOp.MEAN, dense))
    return [None if gradient is None else next(means) for gradient in gradients]


_TRACING = threading.RLock()
"""Held while a graph is traced: tracing replaces the calls of layers, which all threads share."""


def graph_of(function: Callable[..., Any], assembly: Assembly, **options: Any) -> Any:
    """Wrap a function in ``tf.function``.

    Without AutoGraph, which takes three quarters of the time of tracing, unless a custom ``train_step`` or
    ``test_step`` may need it.
    """
    if assembly.has_custom_train_step:  # AutoGraph needs the function itself; nothing is traced in the background
        return tf.function(function, autograph=True, **options)

    @functools.wraps(function)
    def traced(*arguments: Any, **named: Any) -> Any:
        with _TRACING:
            return function(*arguments, **named)

    return tf.function(traced, autograph=False, **options)
