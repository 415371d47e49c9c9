"""What is found out about a model before it runs out of memory."""

from collections.abc import Callable

import keras
import pytest
from keras import layers

from accel_engine.training.recovery.memory_facts import has_parts, splitting_changes


def model_of(*inside: layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((8, 4)), *inside, layers.Dense(2)])


class Own(layers.Layer):
    def call(self, x: object) -> object:
        return x


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (lambda: [layers.Conv1D(2, 3), layers.LayerNormalization(), layers.ReLU()], ()),
        (lambda: [layers.LSTM(4), layers.Dropout(0.0)], ()),
        (lambda: [layers.BatchNormalization(), layers.BatchNormalization()], ("batch normalization",)),
        (lambda: [layers.TimeDistributed(layers.BatchNormalization())], ("batch normalization",)),
        (lambda: [layers.LSTM(4, dropout=0.2)], ("random layers such as dropout",)),
        (
            lambda: [keras.Sequential([layers.BatchNormalization(), layers.Dropout(0.2)])],
            ("batch normalization", "random layers such as dropout"),
        ),
        (lambda: [Own(name="mine")], ("the code of mine",)),
        (lambda: [layers.Lambda(lambda x: x, name="any")], ("the code of any",)),
        (lambda: [layers.Dense(3, activation=lambda x: x, name="last")], ("the code of last",)),
    ],
)
def test_what_micro_batches_change_is_named(make: Callable[[], list[layers.Layer]], changes: tuple[str, ...]) -> None:
    assert splitting_changes(model_of(*make())) == changes


def test_operations_between_layers_may_mix_examples() -> None:
    inputs = keras.Input((4,))
    outputs = layers.Dense(2)(inputs - keras.ops.mean(inputs, axis=0))
    assert splitting_changes(keras.Model(inputs, outputs, name="centered")) == ("the operations of centered",)


def test_a_model_of_one_layer_has_no_parts_to_compute_again() -> None:
    assert not has_parts(model_of())
    assert has_parts(model_of(layers.Dense(64), layers.ReLU(), layers.Dense(64), layers.ReLU(), layers.Dense(64)))
