"""The updates of one kernel for each variable: they give what Keras' optimizers give."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import optimizers

from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.update_kernels import use_fast_updates

from .layer_steps import kinds, operations

KERNELS = {"ResourceApplyAdam", "ResourceApplyGradientDescent", "ResourceApplyKerasMomentum"}
STEPS = 5


def learnt(make: Callable[[], Any], *, fast: bool) -> tuple[Counter[str], list[np.ndarray]]:
    """How often a step has each kernel, and all weights and variables after some steps; one gradient has a few rows."""
    keras.utils.set_random_seed(0)
    rows, dense = keras.layers.Embedding(6, 3), keras.layers.Dense(3)
    model = keras.Sequential([keras.Input((2,), dtype="int32"), rows, dense])
    optimizer = make()
    optimizer.build(model.trainable_variables)
    tokens = tf.constant([[0, 1], [1, 4], [4, 4]])

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_sum(tf.square(model(tokens) - 1.0)))
        optimizer.apply(tape.gradient(loss, model.trainable_variables))

    function = tf.function(step, autograph=False)
    with use_fast_updates(optimizer) if fast else use_fast_updates(optimizers.Lion()):
        graph = function.get_concrete_function().graph
    for _ in range(STEPS):
        function()
    found = Counter(node.op for node in operations(graph) if node.op in KERNELS)
    return found, [np.asarray(each) for each in (*model.variables, *optimizer.variables)]


@pytest.mark.parametrize(
    ("make", "kernel"),
    [
        (optimizers.Adam, "ResourceApplyAdam"),
        (
            lambda: optimizers.AdamW(
                optimizers.schedules.CosineDecay(0.1, 10), weight_decay=0.1, use_ema=True, global_clipnorm=0.5
            ),
            "ResourceApplyAdam",
        ),
        (lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.1, clipvalue=0.3)), "ResourceApplyAdam"),
        (lambda: optimizers.SGD(0.1), "ResourceApplyGradientDescent"),
        (lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True), "ResourceApplyKerasMomentum"),
        (lambda: optimizers.SGD(0.1, momentum=0.9, clipnorm=0.1), "ResourceApplyKerasMomentum"),
    ],
)
def test_updates_are_those_of_keras(make: Callable[[], Any], kernel: str) -> None:
    before, expected = learnt(make, fast=False)
    after, values = learnt(make, fast=True)

    # The weights and the bias of the dense layer; the embedding only where the norm of all gradients is clipped.
    assert (before, after) == ({}, {kernel: 2 + bool(getattr(make(), "global_clipnorm", None))})
    # TensorFlow subtracts Adam's decays from 1 in float32: 1 - 0.999 is 0.00099999. A step here is up to 0.1.
    tolerance = 1e-5 if kernel == "ResourceApplyAdam" else 0.0
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=10 * tolerance, atol=tolerance)


class Derived(optimizers.Adam):
    """A custom subclass."""


@pytest.mark.parametrize("make", [lambda: optimizers.Adam(amsgrad=True), optimizers.RMSprop, optimizers.Nadam, Derived])
def test_other_optimizers_are_left_to_keras(make: Callable[[], Any]) -> None:
    assert learnt(make, fast=True)[0] == {}


@pytest.mark.parametrize(
    "strategy", ["default", "mirrored", pytest.param("central-storage", marks=pytest.mark.campaign)]
)
def test_a_run_trains_with_them_unless_the_plan_has_keras_own(strategy: str) -> None:
    replicas = 1 if strategy == "default" else 2
    plan = Plan(data="synthetic:6x6x1:3:80", batch_size=16, strategy=strategy, optimizer="adamw", validation="off")
    segment = Segment(np.arange(80, dtype=np.int32).reshape(5, replicas, -1), 5, 16)

    def trained(kernels: str) -> tuple[bool, list[np.ndarray]]:
        devices = tuple(f"CPU:{index}" for index in range(replicas))
        assembly = assemble(resolve(plan.replace(layer_kernels=kernels)), devices, None)
        loop = Loop(assembly, ExecutionMode())
        graph = loop.trace(segment)
        assert sum(chunk.count for chunk in loop.run(segment, 0)) == 5
        return bool(KERNELS & kinds(graph)), [np.asarray(each) for each in assembly.model.variables]

    faster, values = trained("auto")
    without, expected = trained("off")
    assert (faster, without) == (True, False)
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-4, atol=1e-6)
