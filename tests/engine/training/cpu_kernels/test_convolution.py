"""Convolutions with a separate bias gradient give the same results as Keras."""

from collections import Counter
from typing import Any

import keras
import numpy as np
import pytest
from keras.layers import Conv2D

from accel_engine.training.cpu_kernels.layer_kernels import use_fast_kernels
from engine.training.layer_steps import apart, graph_of, operations, step_of


class Derived(Conv2D):
    """A custom subclass."""


def layer_of(shape: tuple[int | None, ...], kind: type[Conv2D] = Conv2D, **options: Any) -> Conv2D:
    keras.utils.set_random_seed(0)
    layer = kind(**{"filters": 32, "kernel_size": 3, "bias_initializer": "random_normal", "dtype": "float32"} | options)
    layer.build(shape)
    return layer


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((8, 28, 28, 1), {}),
        ((8, 28, 28, 3), {"padding": "same", "activation": "tanh"}),
        ((8, 64, 48, 4), {"strides": (2, 1), "filters": 24, "kernel_size": (5, 3)}),
        ((8, 28, 28, 2), {"bias_regularizer": "l2", "kernel_constraint": "max_norm"}),
    ],
)
def test_a_step_equals_that_of_keras(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=shape).astype(np.float32)
    layer = layer_of(shape, **options)
    weights = random.normal(size=layer.compute_output_shape(shape)).astype(np.float32)
    without, expected = step_of(layer, x, weights)

    with use_fast_kernels(layer):
        within, values = step_of(layer, x, weights)

    assert (apart(within), apart(without)) == (True, False)
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=2e-5, atol=2e-5 * np.abs(other).max())


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((8, 28, 28, 1), {"use_bias": False}),
        ((8, 28, 28, 1), {"filters": 16}),
        ((8, 28, 28, 1), {"dtype": "mixed_bfloat16"}),
        ((8, 28, 28, 1), {"dtype": "float64"}),
        ((8, 28, 28, 4), {"groups": 2}),
        ((8, 40, 40, 2), {"dilation_rate": 2}),
        ((None, 28, 28, 1), {}),
        ((8, 28, None, 1), {}),
        ((8, 28, 28, 1), {"kind": Derived}),
    ],
)
def test_small_batches_and_other_layers_use_keras(shape: tuple[int | None, ...], options: dict[str, Any]) -> None:
    layer = layer_of(shape, **options)

    left, keras_own = (
        Counter(node.op for node in operations(graph_of(layer, shape, xla=xla))) for xla in (False, True)
    )

    assert left == keras_own
