"""Counted operations, compared with counts by hand from the definitions of layers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.structure import ArraySpec
from accel_engine.models.build import build
from accel_engine.models.data_description import DataDescription
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.feed import Segment, StreamedFeed
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.model_analysis.flops import FlopCount, count_flops

BATCH = 4


def forward(*layers: keras.layers.Layer, shape: tuple[int, ...], training: bool = False) -> FlopCount:
    """Count the forward pass of some layers, and with ``training`` the gradients of all weights too."""
    model = keras.Sequential([keras.Input(shape), *layers])

    def step(x: tf.Tensor) -> Any:
        if not training:
            return model(x, training=True)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x, training=True) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    return traced(step, tf.TensorSpec((BATCH, *shape)))


def traced(function: Callable[..., Any], *signature: tf.TensorSpec) -> FlopCount:
    return count_flops(tf.function(function).get_concrete_function(*signature).graph, chunk=False)


LAYERS = [
    (keras.layers.Dense(7), (5,), 2 * 5 * 7),
    (keras.layers.Dense(7), (3, 5), 3 * 2 * 5 * 7),
    (keras.layers.Conv2D(6, 3), (10, 8, 2), 2 * (8 * 6 * 6) * (3 * 3 * 2)),
    (keras.layers.Conv2D(6, 3, strides=2, padding="same"), (10, 8, 2), 2 * (5 * 4 * 6) * (3 * 3 * 2)),
    (keras.layers.Conv2D(6, 3, groups=2), (10, 8, 4), 2 * (8 * 6 * 6) * (3 * 3 * 2)),
    (keras.layers.Conv1D(6, 3), (10, 2), 2 * (8 * 6) * (3 * 2)),
    (keras.layers.Conv3D(6, 3), (5, 5, 5, 2), 2 * (3 * 3 * 3 * 6) * (3 * 3 * 3 * 2)),
    (keras.layers.DepthwiseConv2D(3, depth_multiplier=2), (10, 8, 4), 2 * (8 * 6 * 8) * (3 * 3)),
    (keras.layers.SeparableConv2D(6, 3), (10, 8, 4), 2 * (8 * 6) * (4 * 3 * 3 + 4 * 6)),
    # Each number of the input is multiplied with a whole window.
    (keras.layers.Conv2DTranspose(6, 3, strides=2), (5, 4, 2), 2 * (5 * 4 * 2) * (3 * 3 * 6)),
]


@pytest.mark.parametrize(("layer", "shape", "flops"), LAYERS, ids=lambda value: getattr(value, "name", None))
def test_flops_of_layers_match_counts_by_hand(layer: keras.layers.Layer, shape: tuple[int, ...], flops: int) -> None:
    copies = [type(layer).from_config(layer.get_config()) for _ in range(2)]

    assert forward(copies[0], shape=shape).flops == BATCH * flops
    # The weights' gradient is as much again; nothing needs the input's. But a separable layer is two.
    inner = 2 * (8 * 6) * (4 * 6) if isinstance(layer, keras.layers.SeparableConv2D) else 0
    assert forward(copies[1], shape=shape, training=True).flops == BATCH * (2 * flops + inner)


def test_flops_of_attention_match_counts_by_hand() -> None:
    class Attending(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.attention = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)

        def call(self, x: Any) -> Any:
            return self.attention(x, x)

    steps, width, heads, key = 10, 8, 2, 3
    projections = 4 * (2 * steps * width * heads * key)
    products = 2 * (2 * steps * steps * heads * key)

    assert forward(Attending(), shape=(steps, width)).flops == BATCH * (projections + products)


@pytest.mark.parametrize(
    ("equation", "first", "second", "flops"),
    [
        ("ij,jk->ik", (2, 3), (3, 5), 2 * 2 * 3 * 5),
        ("...ij,jk->...ik", (7, 2, 3), (3, 5), 2 * 7 * 2 * 3 * 5),
        ("...ij,...jk->...ik", (7, 2, 3), (1, 3, 5), 2 * 7 * 2 * 3 * 5),
        ("ij,k->k", (2, 3), (5,), 2 * 5),  # the first is summed before anything is multiplied
    ],
)
def test_flops_of_einsum(equation: str, first: tuple[int, ...], second: tuple[int, ...], flops: int) -> None:
    found = traced(lambda x, y: tf.einsum(equation, x, y), tf.TensorSpec(first), tf.TensorSpec(second))

    assert found.flops == flops


def test_unused_operations_do_not_count() -> None:
    def step(x: tf.Tensor) -> tf.Tensor:
        tf.matmul(x, x)
        return x + 1

    assert traced(step, tf.TensorSpec((3, 3))).flops == 0


def test_the_larger_of_two_branches_counts() -> None:
    def step(x: tf.Tensor) -> tf.Tensor:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, x) @ x, lambda: tf.matmul(x, x))

    assert traced(step, tf.TensorSpec((3, 3))).flops == 2 * (2 * 3**3)


def test_uncountable_graphs_have_a_reason() -> None:
    def repeat(x: tf.Tensor) -> tf.Tensor:
        for _ in tf.range(tf.shape(x)[0]):
            x = tf.matmul(x, x)
        return x

    square = tf.TensorSpec((3, 3))
    loop = traced(repeat, square)
    unknown = traced(tf.matmul, tf.TensorSpec((None, 3)), square)
    python = traced(lambda x: tf.py_function(lambda y: y, [x], tf.float32), square)

    assert (loop.flops, loop.reason) == (None, "the model has a loop, whose number of iterations is not in the graph")
    assert unknown.flops is None
    assert "is not static" in unknown.reason
    assert python.reason == "the graph contains EagerPyFunc, whose operations cannot be counted"


def resnet20(side: int, channels: int, classes: int) -> tuple[int, int]:
    """Operations of ResNet-20's forward pass, and of its first layer's, counted from its paper's description."""
    total = first = 2 * side * side * 16 * (3 * 3 * channels)
    width = 16
    for stage in range(3):
        for block in range(3):
            filters = 16 << stage
            if stage and not block:
                side //= 2
            total += 2 * side * side * filters * (3 * 3 * width)
            total += 2 * side * side * filters * (3 * 3 * filters)
            width = filters
    return total + 2 * width * classes, first


def loop_of(plan: Plan, way: ExecutionMode, *, streamed: bool = False) -> FlopCount:
    assembly = assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(plan.virtual_cpus)), None)
    if streamed:
        assembly = replace(assembly, feed=StreamedFeed(assembly.strategy, assembly.dataset.train))
    step_counts = assembly.step_counts
    order = np.zeros((1, step_counts.replicas, step_counts.per_replica_batch), np.int32)
    return count_flops(Loop(assembly, way).trace(Segment(order, 1, step_counts.global_batch)), chunk=True)


def test_a_step_of_resnet20_is_three_times_its_forward_pass_less_the_gradient_of_the_images() -> None:
    plan = Plan(model="resnet20", data="synthetic", batch_size=BATCH, precision="float32")
    shape = (32, 32, 3)
    described = DataDescription(ArraySpec(shape, "float32"), ArraySpec((), "int32"), tuple("0123456789"))
    network = build("resnet20", described)
    one = tf.function(network).get_concrete_function(tf.TensorSpec((1, *shape)))
    whole, first = resnet20(32, 3, 10)

    assert count_flops(one.graph, chunk=False).flops == whole
    assert loop_of(plan, ExecutionMode()).flops == BATCH * (3 * whole - first)


@pytest.mark.parametrize(
    ("way", "streamed"),
    [
        ("plain", False),
        ("xla", False),
        ("micro-batches", False),
        ("mirrored", True),
        *(pytest.param(way, True, marks=pytest.mark.campaign) for way in ("plain", "xla", "micro-batches")),
        pytest.param("mirrored", False, marks=pytest.mark.campaign),
    ],
)
def test_flops_do_not_depend_on_the_execution_mode(way: str, streamed: bool) -> None:
    plan = Plan(model="mlp", batch_size=32, precision="float32")
    if way == "mirrored":
        plan = plan.replace(strategy="mirrored", virtual_cpus=2)
    hidden = 64 * 128
    output = 128 * 10

    taken = {"xla": ExecutionMode(xla=True), "micro-batches": ExecutionMode(micro_batches=4)}.get(way, ExecutionMode())

    found = loop_of(plan, taken, streamed=streamed)

    assert found.flops == 32 * 2 * (2 * hidden + 3 * output)
