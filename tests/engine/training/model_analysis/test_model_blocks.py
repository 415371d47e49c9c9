"""The blocks of a model, as a drawing shows it."""

import keras

from accel_engine.training.model_analysis.model_blocks import model_blocks


def test_layers_without_weights_belong_to_the_block_before_and_equal_blocks_are_counted() -> None:
    layers = [part for _ in range(3) for part in (keras.layers.Dense(8), keras.layers.ReLU())]
    blocks, is_chain = model_blocks(keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(2)]))
    assert is_chain
    assert [(block.layers, block.shape, block.parameters, block.count) for block in blocks] == [
        (("Dense", "ReLU"), (8,), 3 * 72, 3),
        (("Dense",), (2,), 18, 1),
    ]


def test_a_block_reaches_from_where_branches_begin_to_where_they_end() -> None:
    inputs = outputs = keras.Input((8,))
    for _ in range(2):
        outputs = keras.layers.ReLU()(keras.layers.Add()([outputs, keras.layers.Dense(8)(outputs)]))
    blocks, is_chain = model_blocks(keras.Model(inputs, keras.layers.Dense(1)(outputs)))
    assert is_chain
    assert [(block.layers, block.count, block.has_branches) for block in blocks] == [
        (("Dense", "Add", "ReLU"), 2, True),
        (("Dense",), 1, False),
    ]


def test_of_a_model_whose_connections_are_unknown_the_layers_of_each_class_are_counted() -> None:
    class Mine(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = keras.layers.Dense(4), keras.layers.Dense(2)

        def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
            return self.second(self.first(inputs))

    model = Mine()
    model(keras.ops.zeros((1, 3)))
    blocks, is_chain = model_blocks(model)
    assert not is_chain
    assert [(block.layers, block.count) for block in blocks] == [(("Dense",), 2)]
