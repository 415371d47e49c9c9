"""Which layers use the fast kernels, and that training gives the same results."""

from collections import Counter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.layers import BatchNormalization, Conv2D

from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.layer_kernels import CPU_KERNELS, use_fast_kernels
from accel_engine.training.model_analysis.flops import count_flops
from accel_engine.training.model_analysis.layer_table import tabulate
from engine.training.layer_steps import apart, graph_of, kinds, operations, step_of

MODELS = """
import keras
from keras import layers

class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = [layers.Conv2D(32, 3, padding="same"), layers.BatchNormalization(momentum=0.9)]

    def call(self, x, training=None):
        convolve, normalize = self.inner
        return normalize(convolve(x), training=training)

def convolved(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), Block(), layers.ReLU(), layers.GlobalAveragePooling2D(),
                             layers.Dense(classes, activation="softmax")])

class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def own(input_shape, classes):
    inputs = keras.Input(input_shape)
    outputs = layers.Dense(classes, activation="softmax")(layers.Flatten()(Block()(inputs)))
    return Own(inputs, outputs)
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def segment(steps: int, replicas: int) -> Segment:
    """Some steps of 64 examples on each replica."""
    return Segment(np.arange(steps * replicas * 64, dtype=np.int32).reshape(steps, replicas, 64), steps, replicas * 64)


def changed(graph: Any) -> bool:
    """Whether a graph has the fast kernels, for both kinds of layers or for neither."""
    fused = "FusedBatchNormV3" in kinds(graph)
    assert apart(graph) is fused
    return fused


def test_layer_marks_are_kept_and_calls_restored(models: str) -> None:
    assembly = assemble(resolve(Plan(model=f"{models}:convolved", batch_size=64, validation="off")), ("CPU:0",), None)

    graph = Loop(assembly, ExecutionMode()).trace(segment(2, 1))

    assert changed(graph)
    marks = ["layer.0." in node.name for node in operations(graph) if node.op in ("Conv2D", "FusedBatchNormV3")]
    assert marks
    assert all(marks)
    assert not any("call" in vars(layer) for layer in assembly.model._flatten_layers())


def test_flops_belong_to_the_layer_with_either_kernel() -> None:
    plan = Plan(model="fashion-cnn", data="synthetic:28x28x1:10:128", batch_size=64, validation="off")
    assembly = assemble(resolve(plan), ("CPU:0",), None)

    graph = Loop(assembly, ExecutionMode()).trace(segment(1, 1))

    assert apart(graph)
    table = tabulate(assembly.model, count_flops(graph, chunk=True))
    assert table.layers[0].flops == 2 * 2 * 64 * 26 * 26 * 9 * 64  # forward, and the filters' gradient
    assert table.rest == 0


@pytest.mark.parametrize(
    ("model", "xla", "kernels"),
    [("convolved", True, "auto"), ("own", False, "auto"), ("convolved", False, "off")],
)
def test_xla_custom_train_steps_and_the_plan_use_keras(models: str, model: str, xla: bool, kernels: str) -> None:
    plan = Plan(model=f"{models}:{model}", batch_size=64, validation="off", layer_kernels=kernels)
    assembly = assemble(resolve(plan), ("CPU:0",), None)

    assert not changed(Loop(assembly, ExecutionMode(xla)).trace(segment(2, 1)))


@pytest.mark.parametrize(
    "strategy", ["default", "central-storage", pytest.param("mirrored", marks=pytest.mark.campaign)]
)
def test_results_are_the_same_under_strategies(models: str, strategy: str) -> None:
    replicas = 1 if strategy == "default" else 2
    batch = 64 * replicas
    plan = Plan(model=f"{models}:convolved", strategy=strategy, batch_size=batch, optimizer="sgd", validation="off")

    def learnt(layer_kernels: str) -> tuple[bool, list[np.ndarray]]:
        assembly = assemble(
            resolve(plan.replace(layer_kernels=layer_kernels)), tuple(f"CPU:{index}" for index in range(replicas)), None
        )
        loop, order = Loop(assembly, ExecutionMode()), segment(5, replicas)
        graph = loop.trace(order)
        assert sum(measured.count for measured in loop.run(order, 0)) == 5
        return changed(graph), [np.asarray(variable) for variable in assembly.model.variables]

    faster, values = learnt("auto")
    without, expected = learnt("off")

    assert (faster, without) == (True, False)
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


class DerivedConvolution(Conv2D):
    """A custom subclass."""


def convolution_of(shape: tuple[int | None, ...], kind: type[Conv2D] = Conv2D, **options: Any) -> Conv2D:
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
def test_a_convolving_step_equals_that_of_keras(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=shape).astype(np.float32)
    layer = convolution_of(shape, **options)
    weights = random.normal(size=layer.compute_output_shape(shape)).astype(np.float32)
    without, expected = step_of(layer, x, weights)

    with use_fast_kernels(layer, CPU_KERNELS):
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
        ((8, 28, 28, 1), {"kind": DerivedConvolution}),
    ],
)
def test_small_batches_and_other_layers_use_keras(shape: tuple[int | None, ...], options: dict[str, Any]) -> None:
    layer = convolution_of(shape, **options)

    left, keras_own = (
        Counter(node.op for node in operations(graph_of(layer, shape, xla=xla))) for xla in (False, True)
    )

    assert left == keras_own


KERNEL = "FusedBatchNormV3"


class DerivedNormalization(BatchNormalization):
    """A custom subclass."""


def normalization_of(shape: tuple[int | None, ...], **options: Any) -> BatchNormalization:
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
def test_a_normalizing_step_equals_that_of_keras(
    shape: tuple[int, ...], options: dict[str, Any], precision: str, tolerance: float
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(3.0, 2.0, shape).astype(np.float32)
    weights = random.normal(size=shape).astype(np.float32)
    without, expected = step_of(normalization_of(shape, dtype=precision, **options), x, weights)
    layer = normalization_of(shape, dtype=precision, **options)

    with use_fast_kernels(layer, CPU_KERNELS):
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
def test_batch_normalization_that_is_unsupported_or_slow_cases_use_keras(
    shape: tuple[int | None, ...], options: dict[str, Any], call: dict[str, Any]
) -> None:
    if "mask" in call:
        call = {"mask": tf.ones(shape[:-1], tf.bool)}

    assert KERNEL not in kinds(graph_of(normalization_of(shape, **options), shape, **{"training": True} | call))


def test_subclasses_of_batch_normalization_use_keras() -> None:
    shape = (8, 32, 32, 16)

    assert KERNEL not in kinds(graph_of(DerivedNormalization(), shape, training=True))
    assert KERNEL in kinds(graph_of(normalization_of(shape), shape, training=True))
