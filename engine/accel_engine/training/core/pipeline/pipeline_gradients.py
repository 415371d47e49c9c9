"""Traces the gradients of a step in stages, whose devices work on several micro-batches at a time.

TensorFlow runs what is ready on each device. So it suffices to trace all micro-batches one after the other, with each
stage's operations on its device: while the second stage takes a micro-batch, the first one takes the next. Each stage
is a function, which is traced once.

The order is 1F1B (one forward, one backward): a stage holds the activations of at most as many micro-batches as there
are stages from it to the last one, and begins the next one only after a backward pass. The devices wait as long as with
all forward passes before all backward passes, and a stage holds fewer activations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.keras_support.model_structure import override_calls
from accel_engine.models.model_call import call_model
from accel_engine.plan.array_bytes import in_flight
from accel_engine.private_names.keras_names import LayerLosses, all_layers, clear_losses, mask_of, set_mask
from accel_engine.training.core.pipeline.stages import ModelStages, Stage
from accel_engine.training.core.rematerialization.recomputation import FunctionLayer, Tracing

Measure = Callable[[Batch, Any, LayerLosses], tuple[tf.Tensor, list[tf.Tensor]]]
"""From a batch, the model's outputs and the losses of its layers to the objective, whose gradient is taken, and what
is measured, float32 tensors."""


@dataclass(eq=False)
class _Taken:
    """The inputs, outputs and losses of a micro-batch in a stage, with its gradient tape."""

    tape: tf.GradientTape
    inputs: list[tf.Tensor]
    outputs: list[tf.Tensor]
    losses: list[tf.Tensor]


@dataclass(eq=False)
class _Values:
    """Tensors between stages."""

    tensors: dict[int, tf.Tensor] = field(default_factory=dict)
    """By the id of the symbolic tensor."""
    losses: list[tf.Tensor] = field(default_factory=list)
    """The losses of layers, float scalars, in the order of stages."""


class Pipeline:
    """Computes the gradients of a step in stages.

    Args:
        stages: The model in stages.
        variables: The trainable variables.
        measure: Computes the objective of a micro-batch.
        square: The squared norm of some gradients, if the norm of each micro-batch is to be measured, too.
        recomputed: How steps are traced, if all stages but the last are computed again for their gradients, so that
            they hold the inputs of micro-batches, and the activations of one; ``None`` if not.
    """

    def __init__(
        self,
        stages: ModelStages,
        variables: Sequence[keras.Variable],
        measure: Measure,
        square: Callable[[Sequence[Any]], tf.Tensor] | None = None,
        recomputed: Tracing | None = None,
    ) -> None:
        self._model, self._stages, self._variables, self._measure = stages.model, stages, variables, measure
        self._square, self._recomputed = square, recomputed
        self._forward = [tf.function(self._traced(stage), autograph=False) for stage in stages.stages[:-1]]
        self._last = tf.function(self._take_last, autograph=False)

    def gradients(self, parts: Sequence[tuple[Batch, float]]) -> tuple[list[Any], list[list[tf.Tensor]]]:
        """The gradients of a batch, and what was measured of each of its micro-batches.

        Args:
            parts: The micro-batches, and by how much the gradients of each count.
        """
        count = len(self._stages.stages)
        limits = [in_flight(stage, count, len(parts)) for stage in range(count)]
        done: list[list[list[Any]]] = [[] for _ in range(count)]  # of each stage and micro-batch
        sums: list[Any] = [None] * len(self._variables)
        measured = list[list[tf.Tensor]]()
        for number, (batch, share) in enumerate(parts):
            waits = [done[stage][number - limit] if number >= limit else [] for stage, limit in enumerate(limits)]
            taken, values = self._take_forward(batch, waits)
            last = self._stages.stages[-1]
            with tf.device(last.device), tf.control_dependencies(_operations(waits[-1])):
                needed = [values.tensors[key] for key in last.needed]
                masks = [mask_of(each) for each in needed]
                results, upstream, own = self._last(batch, needed, masks, values.losses)
            measured.append(list(results))
            done[-1].append([results[0], *own])
            above = _Upstream(last.needed, upstream[: len(needed)], upstream[len(needed) :])
            part = list(own)
            for stage in range(count - 2, -1, -1):
                found = self._take_backward(stage, taken[stage], above)
                self._add(part, found)
                done[stage].append(found or above.given)
            if self._square is not None:
                measured[-1].insert(1, self._square(part))
            self._add(sums, part if len(parts) == 1 else self._shares(part, share))
        return sums, measured

    def _take_forward(self, batch: Batch, waits: list[list[Any]]) -> tuple[list[_Taken], _Values]:
        """The forward pass of a micro-batch in all stages but the last."""
        values, taken = _Values(), list[_Taken]()
        values.tensors = self._inputs(batch)
        for index, stage in enumerate(self._stages.stages[:-1]):
            with tf.device(stage.device), tf.control_dependencies(_operations(waits[index])):
                inputs = [values.tensors[key] for key in stage.needed]
                masks = [mask_of(each) for each in inputs]
                with tf.GradientTape() as tape:
                    tape.watch([each for each in inputs if each.dtype.is_floating])
                    outputs, found, losses = self._forward[index](inputs, masks)
            for output, mask in zip(outputs, found, strict=True):
                if mask is not None:
                    set_mask(output, mask)
            values.tensors |= dict(zip(stage.given, outputs, strict=True))
            values.losses += losses
            taken.append(_Taken(tape, inputs, outputs, losses))
        return taken, values

    def _inputs(self, batch: Batch) -> dict[int, tf.Tensor]:
        """The model's inputs, as the model itself makes them of a batch."""
        found = dict[int, tf.Tensor]()

        def call(inputs: Any, training: Any = None, mask: Any = None) -> Any:
            del training
            found.update(self._stages.inputs(inputs, mask))
            return inputs

        with override_calls({self._model: call}), tf.device(self._stages.stages[0].device):
            call_model(self._model, batch.inputs, training=True)
        return found

    def _traced(self, stage: Stage) -> Callable[..., Any]:
        """The function of a stage: from its inputs and their masks to its outputs, their masks and its losses."""

        def forward(inputs: list[tf.Tensor], masks: list[Any]) -> tuple[list[tf.Tensor], list[Any], list[tf.Tensor]]:
            tensors = _with_masks(stage.needed, inputs, masks)
            FunctionLayer(lambda: self._run(stage, tensors), None)(tf.constant(0), training=True)
            outputs = [tensors[key] for key in stage.given]
            return outputs, [mask_of(each) for each in outputs], self._losses(stage)

        return forward

    def _take_last(
        self, batch: Batch, inputs: list[tf.Tensor], masks: list[Any], losses: list[tf.Tensor]
    ) -> tuple[list[tf.Tensor], list[Any], list[Any]]:
        """The last stage forward and backward: what is measured, and the gradients of its inputs and of variables."""
        batch, stage = Batch(*batch), self._stages.stages[-1]
        floats = [each for each in (*inputs, *losses) if each.dtype.is_floating]

        def call(given: Any, training: Any = None, mask: Any = None) -> Any:
            del given, mask
            tensors = _with_masks(stage.needed, inputs, masks)
            stage.run(tensors, training)
            return self._stages.outputs(tensors)

        with tf.device(stage.device):
            with tf.GradientTape() as tape:
                tape.watch(floats)
                with override_calls({self._model: call}):
                    outputs = call_model(self._model, batch.inputs, training=True)
                every = [*losses, *self._losses(stage)]
                objective, measured = self._measure(batch, outputs, [(self._model, every)])
            found = tape.gradient(objective, [*floats, *(each.value for each in self._variables)])
        gradients = iter(found[: len(floats)])
        upstream = [next(gradients) if each.dtype.is_floating else None for each in (*inputs, *losses)]
        return measured, upstream, found[len(floats) :]

    def _take_backward(self, index: int, taken: _Taken, above: "_Upstream") -> list[Any]:
        """The backward pass of a stage: the gradients of all variables, ``None`` for those that it does not use.

        Empty if no gradient reaches the stage. Adds the gradients of its inputs to ``above``.
        """
        stage, outputs = self._stages.stages[index], [*taken.outputs, *taken.losses]
        upstream = [*above.take(stage.given), *above.take_losses(len(taken.losses))]
        pairs = [(out, given) for out, given in zip(outputs, upstream, strict=True) if given is not None]
        if not pairs:
            return []
        floats = [each for each in taken.inputs if each.dtype.is_floating]
        with tf.device(stage.device):
            found = taken.tape.gradient(
                [out for out, _ in pairs],
                [*floats, *(each.value for each in self._variables)],
                output_gradients=[given for _, given in pairs],
            )
        gradients = iter(found[: len(floats)])
        for key, each in zip(stage.needed, taken.inputs, strict=True):
            above.add(key, next(gradients) if each.dtype.is_floating else None)
        return list(found[len(floats) :])

    def _run(self, stage: Stage, tensors: dict[int, Any]) -> None:
        for use in stage.uses:
            if use.layer is not None:
                clear_losses(use.layer)
        if self._recomputed is None or stage is self._stages.stages[-1]:
            stage.run(tensors, training=True)
            return
        with tf.device(stage.device):
            stage.run_in_parts(tensors, self._recomputed)

    def _losses(self, stage: Stage) -> list[tf.Tensor]:
        """The losses that a stage's layers add, and the penalties of its weights."""
        owned = {id(layer) for layer in stage.owned}
        layers = dict.fromkeys(use.layer for use in stage.uses if isinstance(use.layer, keras.Layer))
        with tf.device(stage.device):
            found = list[tf.Tensor]()
            for layer in layers:
                every = list(layer.losses)  # last the penalties of its weights, which count once
                count = len(every) if id(layer) in owned else len(every) - _penalties(layer)
                found += every[:count]
            return [tf.convert_to_tensor(each) for each in found]

    def _shares(self, gradients: Sequence[Any], share: float) -> list[Any]:
        """The share of a micro-batch's gradients; not of its objective, whose float16 gradients overflow as ever."""
        found = list[Any]()
        for variable, gradient in zip(self._variables, _dense(gradients), strict=True):
            with tf.device(variable.value.device):
                found.append(None if gradient is None else tf.constant(share, gradient.dtype) * gradient)
        return found

    def _add(self, sums: list[Any], found: Sequence[Any]) -> None:
        """Add gradients of the variables to others, on the variables' devices."""
        for index, gradient in enumerate(found):
            if gradient is not None:
                with tf.device(self._variables[index].value.device):
                    before = sums[index]
                    sums[index] = gradient if before is None else tf.add(*_dense([before, gradient]))


class _Upstream:
    """The gradients of the tensors between stages, summed over the stages that read them.

    Args:
        keys: The tensors that the last stage reads.
        gradients: Their gradients; ``None`` without one.
        losses: The gradients of the losses of all stages.
    """

    def __init__(self, keys: Sequence[int], gradients: Sequence[Any], losses: Sequence[Any]) -> None:
        self._sums: dict[int, Any] = {}
        for key, gradient in zip(keys, gradients, strict=True):
            self.add(key, gradient)
        self._losses = list(losses)

    def add(self, key: int, gradient: Any) -> None:
        """Add the gradient of a tensor, if it has one."""
        if gradient is not None:
            before = self._sums.get(key)
            self._sums[key] = gradient if before is None else tf.add(before, gradient)

    def take(self, keys: Sequence[int]) -> list[Any]:
        """The gradients of some tensors, ``None`` without one."""
        return [self._sums.get(key) for key in keys]

    def take_losses(self, count: int) -> list[Any]:
        """The gradients of the losses of a stage; call it for the stages in reverse order."""
        first = len(self._losses) - count
        taken, self._losses = self._losses[first:], self._losses[:first]
        return taken

    @property
    def given(self) -> list[Any]:
        """The gradients so far."""
        return list(self._sums.values())


def _with_masks(keys: Sequence[int], tensors: Sequence[tf.Tensor], masks: Sequence[Any]) -> dict[int, Any]:
    found = dict(zip(keys, tensors, strict=True))
    for key, mask in zip(keys, masks, strict=True):
        if mask is not None:
            set_mask(found[key], mask)
    return found


def _penalties(layer: Any) -> int:
    variables = {id(each): each for own in all_layers(layer) for each in own.trainable_weights}
    return sum(each.regularizer is not None for each in variables.values())


def _dense(gradients: Sequence[Any]) -> list[Any]:
    """Sum the rows of gradients that occur more than once, as an embedding's do."""
    return [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in gradients]


def _operations(gradients: Sequence[Any]) -> list[Any]:
    """The tensors of gradients, for control dependencies of a later micro-batch."""
    return [each.values if isinstance(each, tf.IndexedSlices) else each for each in gradients if each is not None]
