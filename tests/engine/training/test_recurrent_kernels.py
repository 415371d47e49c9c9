"""The kernels of XLA on GPUs, tried on a CPU: they give what Keras' layers give, forwards and backwards."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.layer_kernels import GPU_KERNELS, use_fast_kernels
from accel_engine.training.model_analysis.flops import count_flops
from accel_engine.training.model_analysis.layer_table import tabulate

from .layer_steps import kinds, operations

RANDOM = np.random.default_rng(1)
SEQUENCES = RANDOM.normal(size=(4, 5, 3)).astype(np.float32)
MASK = np.array([[0, 0, 0, 0, 0], [0, 1, 0, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.bool_)
TIES = np.round(RANDOM.normal(size=(2, 8, 12, 3))).astype(np.float32)  # most windows have several maxima


def learnt(layer: Any, inputs: np.ndarray, mask: np.ndarray | None, *, xla: bool = False) -> tuple[Any, list[Any]]:
    """The graph of two steps, and their outputs, gradients and the layer's state."""

    def step(inputs: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = keras.tree.flatten(layer(inputs, training=True, **({} if mask is None else {"mask": mask})))
            weights = [tf.reshape(tf.cos(tf.range(tf.size(each), dtype="float32")), tf.shape(each)) for each in outputs]
            loss = tf.add_n([tf.reduce_sum(tf.cast(a, tf.float32) * b) for a, b in zip(outputs, weights, strict=True)])
        return [*outputs, *tape.gradient(loss, [inputs, *(each.value for each in layer.trainable_variables)])]

    function = tf.function(step, jit_compile=xla, autograph=False).get_concrete_function(tf.constant(inputs))
    found = [*function(tf.constant(inputs)), *function(tf.constant(inputs)), *layer.non_trainable_variables]
    return function.graph, [np.asarray(tf.cast(each, tf.float32)) for each in found]


def both(make: Any, inputs: np.ndarray, mask: np.ndarray | None = None, *, xla: bool = False) -> list[tuple[Any, Any]]:
    """What a layer learns with Keras' own kernels and with those for GPUs."""
    found = []
    for kernels in ({}, GPU_KERNELS):
        keras.utils.set_random_seed(2)
        layer = make()
        layer.build(inputs.shape)
        with use_fast_kernels(layer, kernels):
            found.append(learnt(layer, inputs, mask, xla=xla))
    return found


def has_static_loop(graph: Any) -> bool:
    return any("iterations.5" in node.name for node in operations(graph))


@pytest.mark.share(6)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU])
@pytest.mark.parametrize(
    "options",
    [
        {"return_sequences": True, "go_backwards": True, "return_state": True, "bias_initializer": "random_normal"},
        {"dropout": 0.3, "seed": 3, "zero_output_for_mask": True, "return_sequences": True},
        {},
        {"use_bias": False, "activation": "relu"},
        {"dtype": "mixed_bfloat16"},
        {"stateful": True},
    ],
)
def test_recurrent_layers_compute_what_keras_computes(kind: Any, options: dict[str, Any], masked: bool) -> None:
    (before, expected), (after, values) = both(lambda: kind(4, **options), SEQUENCES, MASK if masked else None)

    assert (has_static_loop(before), has_static_loop(after)) == (False, True)
    tolerance = 0.02 if "dtype" in options else 2e-6  # sums in another order
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("masked", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_both_directions_compute_what_keras_computes_in_xla(masked: bool) -> None:
    def make() -> Any:
        return layers.Bidirectional(layers.GRU(4, return_sequences=True))

    (before, expected), (after, values) = both(make, SEQUENCES, MASK if masked else None, xla=True)

    assert (has_static_loop(before), has_static_loop(after)) == (False, True)
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=2e-6, atol=2e-6)


class Derived(layers.LSTM):
    """A custom subclass."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.LSTM(4, recurrent_dropout=0.2),
        lambda: layers.LSTM(4, unroll=True),
        lambda: layers.LSTM(4, implementation=1),
        lambda: layers.GRU(4, reset_after=False),
        lambda: layers.LSTM(4, activation=lambda x: x / 2),
        lambda: layers.SimpleRNN(4),
        lambda: Derived(4),
        lambda: layers.MaxPooling1D(2, strides=1),
        lambda: layers.MaxPooling1D(2),  # five steps
        lambda: layers.AveragePooling1D(5),
    ],
)
def test_other_layers_are_left_to_keras(make: Any) -> None:
    layer = make()
    layer.build(SEQUENCES.shape)
    graphs = []
    for kernels in ({}, GPU_KERNELS):
        with use_fast_kernels(layer, kernels):
            traced = tf.function(lambda x: layer(x, training=True)).get_concrete_function(tf.constant(SEQUENCES))
        graphs.append(sorted(node.op for node in operations(traced.graph)))

    assert graphs[0] == graphs[1]


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda: layers.MaxPooling2D(), TIES),
        (lambda: layers.MaxPooling2D((4, 3), padding="same"), TIES),
        (lambda: layers.MaxPooling1D(4, data_format="channels_first"), TIES[..., 0]),
        pytest.param(lambda: layers.MaxPooling3D((2, 1, 3)), TIES[..., np.newaxis], marks=pytest.mark.campaign),
    ],
)
def test_pooling_is_the_same_to_the_bit(make: Any, inputs: np.ndarray) -> None:
    """Its gradient goes to the first of equal maxima."""
    (before, expected), (after, values) = both(make, inputs, xla=True)

    assert any("MaxPool" in kind for kind in kinds(before))
    assert not any("MaxPool" in kind for kind in kinds(after))
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, other)


MODEL = """
import keras
from keras import layers

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Conv2D(4, 3, padding="same"), layers.MaxPooling2D(),
                             layers.Reshape((4, 16)), layers.GRU(3), layers.Dense(classes, activation="softmax")])
"""


def test_a_gpu_trains_with_them_in_xla_alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    plan = Plan(model=f"{tmp_path / 'net.py'}:build", data="synthetic:8x8x1:3:64", batch_size=16, validation="off")
    monkeypatch.setattr(Assembly, "on_gpu", True)
    monkeypatch.setattr(Assembly, "on_cpu", False)
    monkeypatch.setattr(Assembly, "on_tpu", False)
    segment = Segment(np.arange(64, dtype=np.int32).reshape(4, 1, 16), 4, 16)

    def trained(kernels: str) -> tuple[Assembly, Any, np.ndarray]:
        assembly = assemble(resolve(plan.replace(layer_kernels=kernels)), ("CPU:0",), None)
        loop = Loop(assembly, ExecutionMode(xla=True))
        graph = loop.trace(segment)
        return assembly, graph, np.concatenate([chunk.series["loss"] for chunk in loop.run(segment, 0)])

    assembly, graph, losses = trained("auto")
    _, kept, expected = trained("off")
    plain = Loop(assembly, ExecutionMode()).trace(segment)
    assert ["MaxPoolGrad" in kinds(each) for each in (graph, kept, plain)] == [False, True, True]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    # The loops have a known number of steps, so that their operations can be counted.
    assert count_flops(kept, chunk=True).flops is None
    table = tabulate(assembly.model, count_flops(graph, chunk=True))
    assert table.rest == 0
    gru = table.layers[-2]
    steps = 16 * 4  # 16 inputs, 3 units and 9 gates; forwards, and the gradients of what is multiplied and the weights
    assert gru.flops == 2 * steps * 9 * 3 * (16 + 3)
