"""Batch normalization with the fused kernel gives the same results as Keras."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.layers import BatchNormalization

from accel_engine.training.cpu_kernels.layer_kernels import use_fast_kernels
from engine.training.layer_steps import graph_of, kinds, step_of

KERNEL = "FusedBatchNormV3"


class Derived(BatchNormalization):
    """A custom subclass."""


def layer_of(shape: tuple[int | None, ...], **options: Any) -> BatchNormalization:
    keras.utils.set_random_seed(0)
    layer = BatchNormalization(beta_initializer="random_normal", gamma_initializer="random_uniform", **options)
    layer.build(shape)
    return layer


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((8, 32, 32, 16), {}),
        ((8, 32, 32, 16), {"axis": 3, "epsilon": 1e-5, "momentum": 0.5}),
        ((8, 32, 32, 16), {"scale": False}),
        ((8, 32, 32, 16), {"center": False}),
        ((8, 32, 32, 16), {"scale": False, "center": False}),
        ((256, 512), {}),
        ((16, 2**13), {}),
        ((64, 64, 32), {}),
        ((4, 8, 16, 8, 32), {}),
    ],
)
@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [
        ("float32", 1e-5),
        pytest.param("mixed_bfloat16", 2**-7, marks=pytest.mark.campaign),
        pytest.param("mixed_float16", 2**-10, marks=pytest.mark.campaign),
    ],
)
def test_a_step_equals_that_of_keras(
    shape: tuple[int, ...], options: dict[str, Any], precision: str, tolerance: float
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(3.0, 2.0, shape).astype(np.float32)
    weights = random.normal(size=shape).astype(np.float32)
    without, expected = step_of(layer_of(shape, dtype=precision, **options), x, weights)
    layer = layer_of(shape, dtype=precision, **options)

    with use_fast_kernels(layer):
        within, values = step_of(layer, x, weights)

    assert KERNEL in kinds(within) - kinds(without)
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=tolerance, atol=tolerance * np.abs(other).max())
    for value, other in zip(values[-2:], expected[-2:], strict=True):
        np.testing.assert_allclose(value, other, rtol=2e-6)


@pytest.mark.parametrize(
    ("shape", "options", "call"),
    [
        ((8, 32, 32, 16), {"trainable": False}, {}),
        ((8, 32, 32, 16), {"synchronized": True}, {}),
        ((8, 32, 32, 16), {"dtype": "float64"}, {}),
        ((8, 16, 32, 32), {"axis": 1}, {}),
        ((8, 32, 31, 16), {}, {}),
        ((8, 32, 32, 24), {}, {}),
        ((None, 32, 32, 16), {}, {}),
        ((8, 32, 32, 16), {}, {"training": False}),
        ((8, 32, 32, 16), {}, {"mask": True}),
    ],
)
def test_unsupported_or_slow_cases_use_keras(
    shape: tuple[int | None, ...], options: dict[str, Any], call: dict[str, Any]
) -> None:
    if "mask" in call:
        call = {"mask": tf.ones(shape[:-1], tf.bool)}

    assert KERNEL not in kinds(graph_of(layer_of(shape, **options), shape, **{"training": True} | call))


def test_subclasses_use_keras() -> None:
    shape = (8, 32, 32, 16)

    assert KERNEL not in kinds(graph_of(Derived(), shape, training=True))
    assert KERNEL in kinds(graph_of(layer_of(shape), shape, training=True))
