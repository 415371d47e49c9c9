"""Which layers use the fast kernels, and that training gives the same results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.model_analysis.flops import count_flops
from accel_engine.training.model_analysis.layer_table import tabulate
from engine.training.layer_steps import apart, kinds, operations

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
    ("model", "xla", "cpu_kernels"), [("convolved", True, "auto"), ("own", False, "auto"), ("convolved", False, "off")]
)
def test_xla_custom_train_steps_and_the_plan_use_keras(models: str, model: str, xla: bool, cpu_kernels: str) -> None:
    plan = Plan(model=f"{models}:{model}", batch_size=64, validation="off", cpu_kernels=cpu_kernels)
    assembly = assemble(resolve(plan), ("CPU:0",), None)

    assert not changed(Loop(assembly, ExecutionMode(xla)).trace(segment(2, 1)))


@pytest.mark.parametrize(
    "strategy", ["default", "central-storage", pytest.param("mirrored", marks=pytest.mark.campaign)]
)
def test_results_are_the_same_under_strategies(models: str, strategy: str) -> None:
    replicas = 1 if strategy == "default" else 2
    batch = 64 * replicas
    plan = Plan(model=f"{models}:convolved", strategy=strategy, batch_size=batch, optimizer="sgd", validation="off")

    def learnt(cpu_kernels: str) -> tuple[bool, list[np.ndarray]]:
        assembly = assemble(
            resolve(plan.replace(cpu_kernels=cpu_kernels)), tuple(f"CPU:{index}" for index in range(replicas)), None
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
