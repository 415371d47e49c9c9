"""The models of the works in JAX, written by hand; imports neither TensorFlow nor Keras.

Each is a function from :class:`~jax_layers.Forward` and a batch of inputs to logits. They have the parameters of the
Keras models in the same order and shapes, which ``jax_check.py`` checks, as it does their losses.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jax_layers import Forward, he_normal, max_pool, up_sample

Model = Callable[[Forward, jax.Array], jax.Array]


def mlp(layers: Forward, x: jax.Array) -> jax.Array:
    """``accel_engine.models.mlp``."""
    return layers.dense(jax.nn.relu(layers.dense(x.reshape(len(x), -1), 128)), 10)


def regularized_mlp(layers: Forward, x: jax.Array) -> jax.Array:
    """``training_works.regularized_mlp_model``."""
    hidden = jax.nn.relu(layers.dense(x.reshape(len(x), -1), 128))
    return layers.dense(layers.dropout(layers.batch_normalization(hidden), 0.2), 10)


def fashion_cnn(layers: Forward, x: jax.Array) -> jax.Array:
    """``accel_engine.models.fashion_cnn``."""
    x = jax.nn.relu(max_pool(layers.convolution(x, 64, padding="VALID")))
    return layers.dense(x.reshape(len(x), -1), 10)


def resnet20(layers: Forward, x: jax.Array) -> jax.Array:
    """``accel_engine.models.resnet20``."""

    def normalized(x: jax.Array, filters: int, strides: int = 1) -> jax.Array:
        x = layers.convolution(x, filters, strides=strides, bias=False, initializer=he_normal)
        return layers.batch_normalization(x, 0.9)

    x = jax.nn.relu(normalized(x, 16))
    for filters in (16, 32, 64):
        for _ in range(3):
            missing = filters - x.shape[-1]
            residual = jax.nn.relu(normalized(x, filters, 2 if missing else 1))
            residual = normalized(residual, filters)
            if missing:
                x = jnp.pad(x[:, ::2, ::2], ((0, 0), (0, 0), (0, 0), (missing // 2, missing - missing // 2)))
            x = jax.nn.relu(residual + x)
    return layers.dense(x.mean((1, 2)), 10)


def tabular(layers: Forward, x: jax.Array) -> jax.Array:
    """``training_works.tabular_model``."""
    for _ in range(2):
        x = jax.nn.relu(layers.dense(x, 64))
    return layers.dense(x, 2)


def lstm(layers: Forward, x: jax.Array) -> jax.Array:
    """``training_works.lstm_model``."""
    return layers.dense(layers.lstm(x, 64), 10)


def gpt(layers: Forward, x: jax.Array) -> jax.Array:
    """``training_works.gpt_model``."""
    x = layers.embedding(x, 64, 64)
    for _ in range(2):
        x = x + layers.causal_attention(layers.layer_normalization(x), 4, 16)
        hidden = jax.nn.gelu(layers.dense(layers.layer_normalization(x), 256), approximate=False)
        x = x + layers.dense(hidden, 64)
    return layers.dense(x, 64)


def unet(layers: Forward, x: jax.Array) -> jax.Array:
    """``training_works.unet_model``."""
    first = jax.nn.relu(layers.convolution(x, 16))
    second = jax.nn.relu(layers.convolution(max_pool(first), 32))
    x = jax.nn.relu(layers.convolution(jnp.concatenate([up_sample(second), first], -1), 16))
    return layers.convolution(x, 2, size=1)


MODELS: dict[str, Model] = {
    "mlp-32": mlp,
    "mlp-128": mlp,
    "mlp-regularized-32": regularized_mlp,
    "fashion-cnn-128": fashion_cnn,
    "fashion-cnn-1000": fashion_cnn,
    "resnet20-128": resnet20,
    "tabular-128": tabular,
    "lstm-32": lstm,
    "gpt-32": gpt,
    "unet-32": unet,
}
"""The models, by work."""
