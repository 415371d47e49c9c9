"""The activations that a traced step saves, compared with those that follow from the layers by hand."""

from collections.abc import Callable

import keras
import pytest
import tensorflow as tf

from accel_engine.data.structure import ArraySpec, Structure
from accel_engine.training.model_analysis.activations import LayerActivations, trace_activations

IMAGE = ArraySpec((8, 8, 3), "uint8")


def traced(build: Callable[[], keras.Model], inputs: Structure) -> tuple[tuple[LayerActivations, ...], int]:
    with tf.Graph().as_default():
        return trace_activations(build(), inputs)


def saved(build: Callable[[], keras.Model], inputs: Structure) -> list[int]:
    return [layer.saved for layer in traced(build, inputs)[0]]


def sequential(*layers: keras.Layer, shape: tuple[int, ...] = (8, 8, 3)) -> keras.Model:
    return keras.Sequential([keras.Input(shape), *layers])


def test_batch_normalization_saves_its_inputs_and_relu_its_outputs() -> None:
    found = saved(
        lambda: sequential(
            keras.layers.Conv2D(4, 3, padding="same", use_bias=False),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Flatten(),
            keras.layers.Dense(5),
        ),
        IMAGE,
    )
    convolution, normalization, relu, flatten, dense, batch = found
    assert convolution == relu == 4 * 8 * 8 * 4
    assert normalization < 4 * 8 * 8  # some numbers of each channel
    assert flatten == 0  # the same memory
    assert dense == 4 * 5  # for the loss
    assert batch == 4 * 8 * 8 * 3  # for the filters' gradient


def test_a_frozen_layer_needs_no_inputs() -> None:
    def build() -> keras.Model:
        model = sequential(keras.layers.Dense(7), keras.layers.Dense(5), shape=(30,))
        model.layers[0].trainable = False
        return model

    assert saved(build, ArraySpec((30,), "float32")) == [4 * 7, 4 * 5, 0]


def test_an_attention_saves_its_scores() -> None:
    def build() -> keras.Model:
        inputs = keras.Input((16, 8))
        return keras.Model(inputs, keras.layers.MultiHeadAttention(3, 4)(inputs, inputs))

    attention, _ = saved(build, ArraySpec((16, 8), "float32"))
    scores, projections = 4 * 3 * 16 * 16, 4 * 3 * 16 * 4
    assert scores + 3 * projections < attention < 3 * scores + 12 * projections


@pytest.mark.parametrize("steps", [5, 20])
def test_a_recurrent_layer_saves_values_of_each_step(steps: int) -> None:
    lstm, _ = saved(lambda: sequential(keras.layers.LSTM(6), shape=(steps, 4)), ArraySpec((steps, 4), "float32"))
    # Four gates, the cell and the state before and after it, and the step's inputs: all but a few are saved.
    assert 6 * 4 * 6 * steps < lstm < 10 * 4 * 6 * steps + 4 * 4 * steps


def test_layers_of_nested_models_and_several_inputs_count() -> None:
    def build() -> keras.Model:
        first, second = keras.Input((10,), name="first"), keras.Input((20,), name="second")
        inner = keras.Sequential([keras.Input((10,)), keras.layers.Dense(9, activation="relu")], name="inner")
        joined = keras.layers.Concatenate()([inner(first), second])
        return keras.Model({"first": first, "second": second}, keras.layers.Dense(3)(joined))

    inputs = {"first": ArraySpec((10,), "float32"), "second": ArraySpec((20,), "float32")}
    layers, operations = traced(build, inputs)
    by_size = sorted(layer.saved for layer in layers)
    assert by_size[-3:] == [4 * 9, 4 * 10, 4 * 29]  # the relu, the first inputs, and both together
    assert sum(by_size) == 4 * (9 + 10 + 29 + 3)
    assert operations > 20


def test_the_output_of_each_layer_is_known() -> None:
    layers, _ = traced(
        lambda: sequential(keras.layers.Dense(7), keras.layers.Dense(5), shape=(30,)), ArraySpec((30,), "float32")
    )
    assert [layer.output for layer in layers] == [4 * 7, 4 * 5, 0]


def test_words_are_counted_in_whole_numbers_and_saved_as_floats() -> None:
    """Keras' layer of texts does not keep the size of the batch; it counts in int64, and the next layer casts."""

    def build() -> keras.Model:
        texts = keras.Input((), dtype="string")
        vectorize = keras.layers.TextVectorization(
            50, output_mode="multi_hot", pad_to_max_tokens=True, vocabulary=["a", "b"]
        )
        x = keras.layers.Reshape((50,))(vectorize(texts))
        return keras.Model(texts, keras.layers.Dense(3, use_bias=False)(x))

    layers, _ = traced(build, ArraySpec((), "string"))
    *_, vectorize, reshape, dense, _ = layers
    assert [layer.saved for layer in (vectorize, reshape, dense)] == [0, 0, 4 * 50 + 4 * 3]
    assert [layer.largest for layer in (vectorize, reshape, dense)] == [8 * 50, 8 * 50, 4 * 50 + 4 * 3]
