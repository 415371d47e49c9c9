"""A training loop in JAX as an expert writes it: many steps of a ``lax.scan`` in one compiled function."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_layers import Convolve, Forward, convolution
from jax_works import Model

RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
"""Keras' defaults of Adam."""


class State(NamedTuple):
    """What a step changes; its arrays are donated to the next dispatch."""

    parameters: list[jax.Array]
    averages: list[jax.Array]
    first: list[jax.Array]
    """Adam's moving averages of the gradients."""
    second: list[jax.Array]
    """Adam's moving averages of their squares."""
    step: jax.Array
    key: jax.Array


class Trainer:
    """Trains a model on examples that stay on the device.

    Args:
        model: The model.
        x: All inputs, in the type that the model takes.
        y: All targets, integers.
        batch: Examples of a step.
        convolve: How to compute convolutions.
    """

    def __init__(
        self, model: Model, x: np.ndarray, y: np.ndarray, batch: int, convolve: Convolve = convolution
    ) -> None:
        self._model, self._convolve = model, convolve
        self._examples = jnp.asarray(x), jnp.asarray(y)
        self._rows = _batches(len(x), batch)
        created = Forward([], [], jax.random.key(0), convolve)
        model(created, self._examples[0][:2])
        self.convolves = created.convolves
        """Whether the model has convolutions."""
        self.state = State(
            created.parameters,
            created.averages,
            [jnp.zeros_like(each) for each in created.parameters],
            [jnp.zeros_like(each) for each in created.parameters],
            jnp.zeros((), jnp.int32),
            jax.random.key(0),
        )
        self._dispatch = jax.jit(self._run, donate_argnums=0)

    def train(self, steps: int) -> tuple[jax.Array, jax.Array]:
        """Take some steps in one dispatch, in a new random order in every epoch.

        Returns:
            Loss and accuracy of each step, ``[steps]``; they may not have been computed yet.
        """
        return self.train_on(np.stack([next(self._rows) for _ in range(steps)]))

    def train_on(self, rows: np.ndarray) -> tuple[jax.Array, jax.Array]:
        """Take a step on each batch of row numbers, ``[steps, batch]``, in one dispatch; returns as :meth:`train`."""
        self.state, measured = self._dispatch(self.state, *self._examples, rows)
        return measured

    def _run(
        self, state: State, x: jax.Array, y: jax.Array, rows: jax.Array
    ) -> tuple[State, tuple[jax.Array, jax.Array]]:
        def step(state: State, rows: jax.Array) -> tuple[State, tuple[jax.Array, jax.Array]]:
            inputs, targets = (each.at[rows].get(mode="promise_in_bounds") for each in (x, y))
            return self._step(state, inputs, targets)

        return lax.scan(step, state, rows)

    def _step(self, state: State, inputs: jax.Array, targets: jax.Array) -> tuple[State, tuple[jax.Array, jax.Array]]:
        key = jax.random.fold_in(state.key, state.step)

        def loss(parameters: list[jax.Array]) -> tuple[jax.Array, tuple[jax.Array, list[jax.Array]]]:
            layers = Forward(parameters, state.averages, key, self._convolve)
            logits = self._model(layers, inputs)
            of_target = jnp.where(targets[..., None] == jnp.arange(logits.shape[-1]), logits, 0).sum(-1)
            # Cheaper than an argmax, and equal to it but for ties.
            correct = of_target >= logits.max(-1)
            return (jax.nn.logsumexp(logits, -1) - of_target).mean(), (correct.mean(), layers.updated)

        (value, (accuracy, averages)), gradients = jax.value_and_grad(loss, has_aux=True)(state.parameters)
        return _adam(state, gradients, averages), (value, accuracy)


def _adam(state: State, gradients: list[jax.Array], averages: list[jax.Array]) -> State:
    """The state after a step of Adam, in the order of Keras' operations."""
    count = (state.step + 1).astype(jnp.float32)
    rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
    first = [old + (new - old) * (1 - BETA_1) for old, new in zip(state.first, gradients, strict=True)]
    second = [old + (new * new - old) * (1 - BETA_2) for old, new in zip(state.second, gradients, strict=True)]
    parameters = [
        old - rate * mean / (jnp.sqrt(square) + EPSILON)
        for old, mean, square in zip(state.parameters, first, second, strict=True)
    ]
    return State(parameters, averages, first, second, state.step + 1, state.key)


def _batches(examples: int, batch: int) -> Iterator[np.ndarray]:
    """Row numbers ``[batch]`` of one batch after the other, in a new random order in every epoch."""
    generator = np.random.default_rng(0)
    while True:
        yield from generator.permutation(examples).astype(np.int32).reshape(-1, batch)
