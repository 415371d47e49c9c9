"""Profiles of real traces of this TensorFlow, with and without XLA: their FLOPs are those of the traced graph."""

from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

from accel_engine.op_profile.reduction import TraceFacts, reduce_trace
from accel_engine.run.diagnostics.model_items import OpProfile
from accel_engine.training.model_analysis import layer_table
from accel_engine.training.model_analysis.flops import count_flops
from accel_engine.training.model_analysis.operation_costs import GraphCosts
from accel_engine.training.reporting.op_profiler import Trace

STEPS, BATCH = 4, 8


def traced(folder: Path, *, xla: bool) -> tuple[OpProfile, dict[str, float]]:
    """The profile of some steps of a model, and the FLOPs of a step by layer, from its graph."""
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            keras.layers.Conv2D(4, 3, strides=2, activation="relu", name="first"),
            keras.layers.Conv2D(6, 3, strides=2, padding="same", name="second"),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu", name="wide"),
            keras.layers.Dense(5, name="last"),
        ]
    )
    optimizer = keras.optimizers.SGD()
    optimizer.build(model.trainable_variables)
    inputs, targets = tf.random.stateless_normal((BATCH, 12, 12, 3), (1, 2)), tf.zeros((BATCH,), tf.int32)

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(targets, outputs, from_logits=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    @tf.function(jit_compile=xla, autograph=False)
    def chunk(steps: Any) -> tf.Tensor:
        with layer_table.mark_layers(model):
            state = (tf.constant(0), tf.constant(0.0))
            return tf.while_loop(lambda index, _: index < steps, lambda index, _: (index + 1, step()), state)[1]

    function = chunk.get_concrete_function(tf.constant(STEPS))
    function(tf.constant(1))
    trace = Trace(folder)
    function(tf.constant(STEPS)).numpy()
    files = trace.end()
    layers = {number: layer.name for layer, number in layer_table.number_layers(model).items()}
    costs = GraphCosts([function.graph])
    profile = reduce_trace(files, TraceFacts(steps=STEPS, layers=layers, cost_of=costs.find))
    table = layer_table.tabulate(model, count_flops(function.graph, chunk=True))
    return profile, {layer.name: layer.flops or 0.0 for layer in table.layers if layer.flops}


@pytest.mark.parametrize("xla", [False, True], ids=["executor", "xla"])
def test_layers_have_the_flops_of_the_graph(tmp_path: Path, *, xla: bool) -> None:
    profile, flops = traced(tmp_path, xla=xla)
    found = {each.name: each.flops / STEPS for each in profile.groups if each.flops}
    # Of the gradient of a strided convolution, XLA's program tells the mean of the places at the edges and within.
    assert found.pop("second") == pytest.approx(flops.pop("second"), rel=0.12 if xla else 1e-6)
    assert found == pytest.approx(flops)
    assert flops.keys() == {"first", "wide", "last"}
    assert profile.device == "cpu"
    assert 0 < profile.busy <= profile.seconds
    assert profile.total >= profile.busy * 0.999
    products = [each for each in profile.operations if each.flops]
    assert all(each.count == STEPS for each in products)
    sizes = [each.bytes for each in products]
    assert all(size and size > 0 for size in sizes)
    forward = next(each for each in products if each.group == "wide" and "gradient_tape" not in each.name)
    if not xla:  # a fusion may read more
        assert forward.bytes == 4 * (BATCH * 54 + 54 * 16 + 16 + BATCH * 16)  # inputs, weights, bias, outputs
    assert any("XLA" in note for note in profile.notes) is xla


def test_a_trace_of_the_same_second_replaces_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plugins/profile/1"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(b"before")
    monkeypatch.setattr(tf.profiler.experimental, "start", lambda _: None)
    monkeypatch.setattr(tf.profiler.experimental, "stop", lambda: (folder / "host.xplane.pb").write_bytes(b"after"))
    assert Trace(tmp_path).end() == folder


def test_one_trace_at_a_time(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "a")
    try:
        with pytest.raises(Exception, match="profiler does not start"):
            Trace(tmp_path / "b")
    finally:
        assert list(trace.end().glob("*.xplane.pb"))
