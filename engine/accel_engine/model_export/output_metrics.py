"""Computes the loss and the metrics of a model's outputs over the batches of its examples, as a validation does."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.inference.runtime import Arrays
from accel_engine.keras_support.model_structure import fixed_batch, has_custom_train_step
from accel_engine.model_export.servable_model import Servable, logits_of, shown_outputs
from accel_engine.models.model_call import call_model
from accel_engine.private_names.keras_graph_names import activation_before_loss, set_logits
from accel_engine.run.store.series_names import SeriesNames
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.training.core.assembly import STEP_SERIES
from accel_engine.training.core.metric_states import MetricStates, mean_loss, pack_states

Values = npt.NDArray[np.float32]
"""The loss of a batch with the states of its metrics; empty where they cannot be computed from outputs."""


class MetricSums:
    """Sums over the batches of one model.

    Attributes:
        count: Examples so far.
        loss: The sum of their losses.
        states: The sums of the states of metrics; a number 0 before the first batch.
    """

    def __init__(self) -> None:
        self.count = 0
        self.loss = 0.0
        self.states: Any = 0.0

    def add(self, values: Values, count: int) -> None:
        """Add the values of a batch."""
        self.count += count
        if len(values):
            self.loss += float(values[0]) * count
            self.states = self.states + values[1:].astype(np.float64)


class OutputMetrics:
    """Computes the outputs of a trained model, and metrics of its outputs and of served models' outputs.

    Args:
        trained: The model, compiled.
    """

    def __init__(self, trained: TrainedModel) -> None:
        self._trained = trained
        self._states = None
        if not has_custom_train_step(trained.model) and trained.model.compiled:
            self._states = MetricStates(trained.model, trained.metrics, SeriesNames(*STEP_SERIES))
        self.are_known = self._states is not None

    def of_model(self) -> Callable[[Batch], tuple[list[npt.NDArray[Any]], Values]]:
        """A function from a batch to the trained model's outputs in their served form, and its metric values.

        It is compiled for the precision that the layers have when it is first called.
        """
        model = self._trained.model

        def compute(raw: Batch) -> tuple[list[tf.Tensor], tf.Tensor]:
            batch = self._trained.prepare(raw)
            outputs = call_model(model, batch.inputs, training=False)
            return shown_outputs(outputs, self._trained), self._measured(batch, outputs)

        function = tf.function(compute, autograph=False, reduce_retracing=fixed_batch(model) is None)

        def run(raw: Batch) -> tuple[list[npt.NDArray[Any]], Values]:
            outputs, values = function(map_structure(tf.convert_to_tensor, raw))
            return [output.numpy() for output in outputs], values.numpy()

        return run

    def of_served(self, served: Servable) -> Callable[[Batch, Arrays], Values]:
        """A function from a batch, and the outputs of a served model by name, to their values.

        Args:
            served: The form of the outputs.

        Returns:
            The function. Its values are empty where layers add losses, which outputs do not tell.
        """
        names = tuple(served.model.output)

        def compute(raw: Batch, outputs: list[tf.Tensor]) -> tf.Tensor:
            if self._activations is None:
                return tf.zeros([0])
            batch, restored = self._trained.prepare(raw), served.restore(dict(zip(names, outputs, strict=True)))
            for leaf, activation in zip(keras.tree.flatten(restored), self._activations, strict=True):
                if activation:
                    set_logits(leaf, logits_of(tf.cast(leaf, tf.float32), of_sigmoid=activation == "sigmoid"))
            return self._measured(batch, restored)

        function = tf.function(compute, autograph=False, reduce_retracing=True)

        def run(raw: Batch, outputs: Arrays) -> Values:
            tensors = [tf.convert_to_tensor(outputs[name]) for name in names]
            return function(map_structure(tf.convert_to_tensor, raw), tensors).numpy()

        return run

    @cached_property
    def _activations(self) -> list[str] | None:
        """Of each output, the activation before which Keras' losses take it: see :func:`activation_before_loss`.

        ``None`` where layers add losses when they are called.
        """
        found, trained = list[str](), self._trained
        losses = list[int]()

        def trace(inputs: Structure) -> None:
            found.extend(map(activation_before_loss, keras.tree.flatten(trained.outputs_of(inputs))))
            losses.append(len(trained.model.losses))

        spec = map_structure(lambda each: tf.TensorSpec((None, *each.shape), each.dtype), trained.dataset.spec.inputs)
        tf.function(trace, autograph=False).get_concrete_function(spec)
        regularized = [each for each in trained.model.trainable_variables if each.regularizer is not None]
        return found if losses == [len(regularized)] else None

    def results(self, sums: MetricSums) -> dict[str, float]:
        """The loss and the metrics of all batches; empty where they cannot be computed from outputs."""
        if self._states is None or not np.ndim(sums.states):
            return {}
        results = self._states.results(self._states.unpack(tf.constant(sums.states, tf.float32)))
        return {"loss": sums.loss / sums.count, **{name: float(np.mean(value)) for name, value in results.items()}}

    def _measured(self, batch: Batch, outputs: Structure) -> tf.Tensor:
        if self._states is None:
            return tf.zeros([0])
        loss, states = self._states.measure(batch, outputs, training=False)
        return tf.concat([[mean_loss(loss)], pack_states(states)], axis=0)
