"""The table of layers, compared with counts by hand."""

import textwrap
from pathlib import Path

import pytest

from accel_engine.events import ModelBuilt, WorkCounted
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import LayerTable, read

from ..conftest import Gym, Trained

MLP = Plan(model="mlp", epochs=1, steps_per_epoch=2, batch_size=64, optimizer="sgd", validation="off")


def table_of(trained: Trained) -> LayerTable:
    table = read(trained.directory).layers
    assert table is not None
    counted = trained.all(WorkCounted)[0]
    assert table.flops == counted.flops
    if table.flops is not None:
        assert sum(row.flops or 0 for row in table.layers if not row.depth) + table.rest == table.flops
    built = trained.only(ModelBuilt)
    assert sum(row.parameters for row in table.layers if not row.depth) == built.parameters
    assert sum(row.trainable for row in table.layers if not row.depth) == built.trainable
    return table


@pytest.mark.parametrize(
    "more",
    [
        {"strategy": "mirrored", "virtual_cpus": 2},
        pytest.param({"xla": "on"}, marks=pytest.mark.campaign),
        pytest.param({}, marks=pytest.mark.campaign),
    ],
)
def test_the_table_of_an_mlp_matches_its_definition(gym: Gym, more: dict[str, object]) -> None:
    table = table_of(gym.train(MLP.replace(**more)))
    flatten, hidden, last = table.layers
    assert (flatten.kind, flatten.shape, flatten.parameters, flatten.flops) == ("Flatten", (64,), 0, 0)
    assert (hidden.kind, hidden.shape, hidden.parameters, hidden.trainable) == ("Dense", (128,), 8320, 8320)
    assert (last.shape, last.parameters) == ((10,), 1290)
    # Forward and the gradient of the weights; no gradient of its input for the first.
    assert hidden.flops == 2 * 2 * 64 * 64 * 128
    assert last.flops == 3 * 2 * 64 * 128 * 10
    assert table.rest == 0


def test_the_table_of_a_cnn_matches_its_definition(gym: Gym) -> None:
    table = table_of(gym.train(MLP.replace(model="cnn", batch_size=32)))
    convolutions = [row for row in table.layers if row.kind == "Conv2D"]
    assert [row.shape for row in convolutions] == [(8, 8, 32), (4, 4, 64), (2, 2, 128)]
    assert [row.flops for row in convolutions] == [
        2 * 2 * 32 * 8 * 8 * 9 * 1 * 32,
        3 * 2 * 32 * 4 * 4 * 9 * 32 * 64,
        3 * 2 * 32 * 2 * 2 * 9 * 64 * 128,
    ]
    normal = next(row for row in table.layers if row.kind == "BatchNormalization")
    assert (normal.parameters, normal.trainable, normal.flops) == (128, 64, 0)


def test_nested_models_and_shared_layers_are_distinguished(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "nested.py"
    source.write_text(
        textwrap.dedent("""
        import keras
        from keras import layers

        def build(input_shape, classes):
            inner = keras.Sequential([keras.Input((16,)), layers.Dense(16), layers.Dense(16)], name="inner")
            frozen = layers.Dense(16, trainable=False, name="dense_1")
            twice = layers.Dense(16, name="dense")
            start = keras.Input(input_shape)
            x = layers.Dense(16)(layers.Flatten()(start))
            x = twice(inner(frozen(twice(x))))
            x = keras.ops.matmul(x, keras.ops.eye(16))
            return keras.Model(start, layers.Dense(classes, activation="softmax")(x))
        """)
    )
    table = table_of(gym.train(MLP.replace(model=f"{source}:build")))
    rows = {row.name: row for row in table.layers if not row.depth}
    product = 2 * 64 * 16 * 16
    inner = next(row for row in table.layers if row.inner)
    assert (inner.name, inner.parameters, inner.flops) == ("inner", 2 * (16 * 16 + 16), 2 * 3 * product)
    assert [row.flops for row in table.layers if row.depth] == [3 * product] * 2
    assert (rows["dense"].parameters, rows["dense"].flops) == (272, 2 * 3 * product)
    frozen = rows["dense_1"]
    assert (frozen.parameters, frozen.trainable, frozen.flops) == (272, 0, 2 * product)
    assert table.rest == 2 * product  # keras.ops.matmul is no layer; its constant has no gradient


def test_uncountable_layers_have_a_reason(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "recurrent.py"
    source.write_text(
        textwrap.dedent("""
        import keras
        from keras import layers

        def build(input_shape, classes):
            model = [keras.Input(input_shape), layers.Reshape((8, 8)), layers.LSTM(4), layers.Dense(classes)]
            return keras.Sequential(model)
        """)
    )
    table = table_of(gym.train(MLP.replace(model=f"{source}:build")))
    assert [row.flops for row in table.layers] == [None] * 3
    assert "loop" in table.reason
