"""Runs Keras' LSTM and GRU layers as loops of a known number of steps, forwards and backwards.

TensorFlow's gradient of a loop has no number of steps that XLA knows, stores what each step computed in lists, reads
the weights in every step and adds up their gradients. Here both loops have as many steps as the sequences are long and
carry the state only. What does not depend on the state is one matrix product over all steps: the share of the inputs,
the gates that the backward loop needs again, and the gradients of the weights.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf

from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.training.model_analysis.flops import RECOMPUTED, loop_name


class _Cell(Protocol):
    """The operations of a cell; its state is ``[batch, width]``, of which the first ``units`` columns are the output.

    ``projected`` are the inputs times their weights, ``mixed`` the last output times the recurrent ones.
    """

    def gates(self, projected: tf.Tensor, mixed: tf.Tensor) -> tf.Tensor:
        """The values of the gates, which the update takes, ``[..., gates]``."""

    def projected(self, gradient: tf.Tensor) -> tf.Tensor:
        """The gradient of ``projected`` for the gradient of the gates."""

    def mixed(self, gradient: tf.Tensor) -> tf.Tensor:
        """The gradient of ``mixed`` for the gradient of the gates."""

    def update(self, gates: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        """The next state."""


class _Lstm:
    def __init__(self, layer: Any) -> None:
        self._gate, self._activation = layer.recurrent_activation, layer.activation

    def gates(self, projected: tf.Tensor, mixed: tf.Tensor) -> tf.Tensor:
        return projected + mixed

    def projected(self, gradient: tf.Tensor) -> tf.Tensor:
        return gradient

    def mixed(self, gradient: tf.Tensor) -> tf.Tensor:
        return gradient

    def update(self, gates: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        taken, kept, candidate, shown = tf.split(gates, 4, axis=-1)
        carry = self._gate(kept) * tf.split(state, 2, axis=-1)[1] + self._gate(taken) * self._activation(candidate)
        return tf.concat([self._gate(shown) * self._activation(carry), carry], axis=-1)


class _Gru:
    """Its candidate takes the share of the state times a gate, so that both shares are among the gates."""

    def __init__(self, layer: Any) -> None:
        self._gate, self._activation, self._units = layer.recurrent_activation, layer.activation, layer.units

    def gates(self, projected: tf.Tensor, mixed: tf.Tensor) -> tf.Tensor:
        own = 2 * self._units
        return tf.concat([projected[..., :own] + mixed[..., :own], projected[..., own:], mixed[..., own:]], axis=-1)

    def projected(self, gradient: tf.Tensor) -> tf.Tensor:
        return gradient[..., : 3 * self._units]

    def mixed(self, gradient: tf.Tensor) -> tf.Tensor:
        return tf.concat([gradient[..., : 2 * self._units], gradient[..., 3 * self._units :]], axis=-1)

    def update(self, gates: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        kept, reset, candidate, mixed = tf.split(gates, 4, axis=-1)
        kept = self._gate(kept)
        return kept * state + (1 - kept) * self._activation(candidate + self._gate(reset) * mixed)


_CELLS: dict[type, Callable[[Any], _Cell]] = {keras.layers.LSTM: _Lstm, keras.layers.GRU: _Gru}


def fast_recurrence(layer: Any) -> Callable[..., Any] | None:
    """An ``inner_loop`` for Keras' own ``LSTM`` and ``GRU``, with its results; else ``None``.

    Keras runs sequences whose length is not static, and cells with dropout of the state.
    """
    if type(layer) not in _CELLS or not _is_plain(layer):
        return None
    keras_loop, cell = layer.inner_loop, _CELLS[type(layer)](layer)

    def inner_loop(sequences: Any, initial_state: Any, mask: Any, training: bool = False) -> Any:
        if None in sequences.shape[1:]:
            return keras_loop(sequences, initial_state, mask, training=training)
        if training and 0 < layer.dropout < 1:
            sequences = sequences * layer.cell.get_dropout_mask(sequences[:, 0, :])[:, tf.newaxis]
        return _run(layer, cell, sequences, keras.tree.flatten(initial_state), mask)

    return inner_loop


def _is_plain(layer: Any) -> bool:
    """Whether a layer computes what its cell here does."""
    return (
        layer.cell.implementation == 2
        and not layer.unroll
        and layer.cell.compute_dtype == layer.compute_dtype
        and getattr(layer.cell, "reset_after", True)
        and all(map(is_keras_defined, (layer.activation, layer.recurrent_activation)))
    )


def _run(layer: Any, cell: _Cell, sequences: tf.Tensor, states: Sequence[tf.Tensor], mask: Any) -> Any:
    """The last output, all outputs ``[batch, steps, units]`` and the last states, as Keras' ``inner_loop``."""
    inputs, known = tf.transpose(sequences, (1, 0, 2)), None
    if mask is not None:
        known = tf.transpose(tf.cast(keras.tree.flatten(mask)[0], tf.bool))[..., tf.newaxis]
    if layer.go_backwards:
        inputs, known = inputs[::-1], None if known is None else known[::-1]
    kernel, recurrent = (keras.ops.convert_to_tensor(each) for each in (layer.cell.kernel, layer.cell.recurrent_kernel))
    bias = tf.zeros_like(recurrent[:2]) if layer.cell.bias is None else keras.ops.convert_to_tensor(layer.cell.bias)
    # A GRU has biases of the inputs and of the state.
    own, mixed = (bias[0], bias[1]) if bias.shape.rank == 2 else (bias, tf.zeros_like(bias))
    every = _states(cell, known, tf.tensordot(inputs, kernel, 1) + own, recurrent, mixed, tf.concat(states, axis=-1))
    outputs = every[..., : layer.units]
    if known is not None:
        # Keras repeats an output while steps are masked. Before the first other step it is zero, whatever the state is.
        begun = tf.cumsum(tf.cast(known, tf.int32)) > 0
        outputs = tf.where(known if layer.zero_output_for_mask else begun, outputs, tf.zeros_like(outputs))
    shown = outputs if layer.return_sequences else outputs[-1:]
    return outputs[-1], tf.transpose(shown, (1, 0, 2)), tf.split(every[-1], len(states), axis=-1)


def _states(cell: _Cell, known: tf.Tensor | None, *arguments: tf.Tensor) -> tf.Tensor:
    """The states after each step, ``[steps, batch, width]``.

    Args:
        cell: Its operations.
        known: Which steps of which sequences are not masked, ``[steps, batch, 1]``.
        arguments: The share of the inputs in the gates ``[steps, batch, ...]``, the recurrent weights and bias, and the
            initial state ``[batch, width]``.
    """
    steps, units, scope = arguments[0].shape[0], arguments[1].shape[0], tf.get_current_name_scope()

    def updated(index: tf.Tensor, gates: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        made = cell.update(gates, state)
        return made if known is None else tf.where(known[index], made, state)

    def scan(projected: tf.Tensor, recurrent: tf.Tensor, bias: tf.Tensor, first: tf.Tensor) -> Any:
        def step(index: tf.Tensor, state: tf.Tensor, states: tf.TensorArray) -> tuple[Any, ...]:
            gates = cell.gates(projected[index], tf.matmul(state[:, :units], recurrent) + bias)
            state = tf.ensure_shape(updated(index, gates, state), first.shape)
            return index + 1, state, states.write(index, state)

        every, _ = _loop(step, steps, first, first)

        def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            before = tf.concat([first[tf.newaxis], every[:-1]], axis=0)
            with tf.name_scope(f"{RECOMPUTED}/"):
                gates = cell.gates(projected, tf.tensordot(before[..., :units], recurrent, 1) + bias)
            back = tf.transpose(recurrent)

            def step(count: tf.Tensor, gradient: tf.Tensor, found: tf.TensorArray) -> tuple[Any, ...]:
                index = steps - 1 - count
                given = gates[index], before[index]
                with tf.GradientTape() as tape:
                    tape.watch(given)
                    made = updated(index, *given)
                own, state = tape.gradient(made, given, upstream[index] + gradient)
                shown = state[:, :units] + tf.matmul(cell.mixed(own), back)
                gradient = tf.ensure_shape(tf.concat([shown, state[:, units:]], axis=-1), first.shape)
                return count + 1, gradient, found.write(index, own)

            with tf.name_scope(f"{scope}/" if scope else "recurrence/"):  # so that it belongs to the layer
                of_gates, of_first = _loop(step, steps, tf.zeros_like(first), gates[0])
                mixed = cell.mixed(of_gates)
                weights = tf.tensordot(before[..., :units], mixed, [[0, 1], [0, 1]])
            return cell.projected(of_gates), weights, tf.reduce_sum(mixed, axis=(0, 1)), of_first

        return every, gradients

    return tf.custom_gradient(scan)(*arguments)


def _loop(step: Callable[..., Any], steps: int, carried: tf.Tensor, made: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Run a loop of a static number of steps.

    Args:
        step: From the index, what is carried and an array, to the same after the step.
        steps: Their number.
        carried: What the first step takes.
        made: Of the type of what a step writes.

    Returns:
        What the steps wrote, ``[steps, ...]``; what the last one carried.
    """
    array = tf.TensorArray(made.dtype, size=steps, element_shape=made.shape)
    _, last, written = tf.while_loop(
        lambda index, *_: index < steps,
        step,
        (tf.constant(0), carried, array),
        maximum_iterations=steps,
        name=loop_name(steps),
    )
    return written.stack(), last
