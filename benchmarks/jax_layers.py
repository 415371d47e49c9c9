"""Layers in plain JAX that compute what Keras' layers do in training; imports neither TensorFlow nor Keras."""

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Initializer = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
Convolve = Callable[[jax.Array, jax.Array, int, str], jax.Array]
"""From images ``[batch, height, width, channels]``, filters ``[height, width, channels, filters]``, strides and padding
to images."""


def glorot_uniform(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Keras' default for kernels."""
    field = math.prod(shape[:-2])
    limit = math.sqrt(6 / (field * (shape[-2] + shape[-1])))
    return generator.uniform(-limit, limit, shape)


def he_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A normal distribution, cut off at two standard deviations."""
    values = generator.standard_normal(shape)
    while (far := np.abs(values) > 2).any():
        values[far] = generator.standard_normal(int(far.sum()))
    return values * math.sqrt(2 / math.prod(shape[:-1])) / 0.87962566  # the deviation of such a distribution


def uniform(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Keras' default for embeddings."""
    return generator.uniform(-0.05, 0.05, shape)


def orthogonal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Orthogonal rows ``[rows, columns]``, with at most as many rows as columns."""
    return np.linalg.qr(generator.standard_normal(shape[::-1]))[0].T


def zeros(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros."""
    return np.zeros(shape)


def ones(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Ones."""
    return np.ones(shape)


def forget_bias(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros, and ones for the second quarter, the forget gate."""
    values = np.zeros(shape)
    values[shape[0] // 4 : shape[0] // 2] = 1
    return values


def convolution(x: jax.Array, filters: jax.Array, strides: int, padding: str) -> jax.Array:
    """A convolution as one operation of XLA."""
    return lax.conv_general_dilated(x, filters, (strides, strides), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def shifted_products(x: jax.Array, filters: jax.Array, strides: int, padding: str) -> jax.Array:
    """A convolution as a sum of matrix products, one for each position in the filter.

    XLA's convolutions on CPUs have slow gradients; the gradients of these products are products, too.
    """
    height, width = filters.shape[:2]
    rows, columns = (
        -(-side // strides) if padding == "SAME" else (side - size) // strides + 1
        for side, size in zip(x.shape[1:3], (height, width), strict=True)
    )
    if padding == "SAME":
        x = jnp.pad(x, ((0, 0), *lax.padtype_to_pads(x.shape[1:3], (height, width), (strides,) * 2, padding), (0, 0)))
    return sum(
        x[:, row : row + strides * rows : strides, column : column + strides * columns : strides] @ filters[row, column]
        for row in range(height)
        for column in range(width)
    )


def max_pool(x: jax.Array) -> jax.Array:
    """The maximum of every 2x2 pixels; on CPUs its gradient is faster than a window's."""
    batch, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))


def up_sample(x: jax.Array) -> jax.Array:
    """Every pixel as 2x2."""
    batch, height, width, channels = x.shape
    x = jnp.broadcast_to(x[:, :, None, :, None], (batch, height, 2, width, 2, channels))
    return x.reshape(batch, 2 * height, 2 * width, channels)


class Forward:
    """The layers of a model in training, with their parameters in the order in which the model uses them.

    Args:
        parameters: What is trained; empty to create all parameters and averages.
        averages: Moving averages, which the forward pass updates.
        key: For random numbers.
        convolve: How to compute convolutions.
    """

    def __init__(
        self, parameters: Sequence[jax.Array], averages: Sequence[jax.Array], key: jax.Array, convolve: Convolve
    ) -> None:
        self.parameters, self.averages = list(parameters), list(averages)
        self.updated: list[jax.Array] = []
        """The averages after the forward pass."""
        self.convolves = False
        """Whether the model has convolutions."""
        self._generator = None if parameters else np.random.default_rng(0)
        self._used = 0
        self._key, self._convolve = key, convolve

    def parameter(self, shape: tuple[int, ...], initializer: Initializer = glorot_uniform) -> jax.Array:
        """The next parameter."""
        if self._generator is not None:
            self.parameters.append(jnp.asarray(initializer(self._generator, shape), jnp.float32))
        self._used += 1
        return self.parameters[self._used - 1]

    def dense(self, x: jax.Array, units: int) -> jax.Array:
        """``[..., units]``."""
        return x @ self.parameter((x.shape[-1], units)) + self.parameter((units,), zeros)

    def convolution(
        self,
        x: jax.Array,
        filters: int,
        size: int = 3,
        strides: int = 1,
        padding: str = "SAME",
        bias: bool = True,
        initializer: Initializer = glorot_uniform,
    ) -> jax.Array:
        """A convolution of square filters."""
        self.convolves = True
        x = self._convolve(x, self.parameter((size, size, x.shape[-1], filters), initializer), strides, padding)
        return x + self.parameter((filters,), zeros) if bias else x

    def batch_normalization(self, x: jax.Array, momentum: float = 0.99) -> jax.Array:
        """Normalise by the batch's moments and update their moving averages."""
        scale, offset = self.parameter(x.shape[-1:], ones), self.parameter(x.shape[-1:], zeros)
        axes = tuple(range(x.ndim - 1))
        mean, variance = x.mean(axes), x.var(axes)
        for initial, value in ((0, mean), (1, variance)):
            if self._generator is not None:
                self.averages.append(jnp.full(value.shape, initial, jnp.float32))
            old = self.averages[len(self.updated)]
            self.updated.append(old * momentum + lax.stop_gradient(value) * (1 - momentum))
        return (x - mean) * (lax.rsqrt(variance + 1e-3) * scale) + offset

    def layer_normalization(self, x: jax.Array) -> jax.Array:
        """Normalise each vector."""
        scale, offset = self.parameter(x.shape[-1:], ones), self.parameter(x.shape[-1:], zeros)
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-3) * scale + offset

    def dropout(self, x: jax.Array, rate: float) -> jax.Array:
        """Set a share of the values to 0. Comparing bits takes half the time of ``jax.random.bernoulli``."""
        self._key, key = jax.random.split(self._key)
        kept = jax.random.bits(key, x.shape, jnp.uint32) >= jnp.uint32(rate * 2**32)
        return jnp.where(kept, x / (1 - rate), 0)

    def embedding(self, tokens: jax.Array, vocabulary: int, width: int) -> jax.Array:
        """The vector of each token: ``[..., width]``."""
        return self.parameter((vocabulary, width), uniform)[tokens]

    def causal_attention(self, x: jax.Array, heads: int, size: int) -> jax.Array:
        """Self-attention to this and earlier tokens.

        Args:
            x: ``[batch, tokens, width]``.
            heads: Number of heads.
            size: Size of the queries, keys and values of a head.
        """
        batch, tokens, width = x.shape
        kernels, biases = [], []
        for _ in range(3):
            kernels.append(self.parameter((width, heads, size)).reshape(width, heads * size))
            biases.append(self.parameter((heads, size), zeros).reshape(heads * size))
        joined = x @ jnp.concatenate(kernels, 1) + jnp.concatenate(biases)
        query, key, value = jnp.moveaxis(joined.reshape(batch, tokens, 3, heads, size), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query / math.sqrt(size), key)
        scores = jnp.where(np.tri(tokens, dtype=bool), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value).reshape(batch, tokens, heads * size)
        kernel, bias = self.parameter((heads, size, width)), self.parameter((width,), zeros)
        return mixed @ kernel.reshape(heads * size, width) + bias

    def lstm(self, x: jax.Array, units: int) -> jax.Array:
        """The last output of an LSTM: ``[batch, units]``; the inputs of all steps are multiplied at once."""
        kernel = self.parameter((x.shape[-1], 4 * units))
        recurrent = self.parameter((units, 4 * units), orthogonal)
        inputs = jnp.swapaxes(x, 0, 1) @ kernel + self.parameter((4 * units,), forget_bias)

        def step(state: tuple[jax.Array, jax.Array], projected: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
            output, cell = state
            added, kept, candidate, shown = jnp.split(projected + output @ recurrent, 4, axis=-1)
            cell = jax.nn.sigmoid(kept) * cell + jax.nn.sigmoid(added) * jnp.tanh(candidate)
            return (jax.nn.sigmoid(shown) * jnp.tanh(cell), cell), None

        nothing = jnp.zeros((len(x), units))
        return lax.scan(step, (nothing, nothing), inputs)[0][0]
