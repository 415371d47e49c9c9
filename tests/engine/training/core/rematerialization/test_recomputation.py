"""A part is computed twice, and does everything else once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from accel_engine.training.core.rematerialization.division import divide_by_layers
from accel_engine.training.core.rematerialization.parts import run_in_parts
from accel_engine.training.core.rematerialization.recomputation import Tracing, numbering_draws


class Draws:
    next_number = 3


@contextmanager
def recorded(draws: Draws) -> Iterator[list[int]]:
    """Number the uses of Keras' dropout as they are traced."""
    numbers: list[int] = []
    from keras.src.backend.tensorflow import random

    dropout = random.dropout

    def numbered(*arguments: Any, **options: Any) -> Any:
        numbers.append(draws.next_number)
        draws.next_number += 1
        return dropout(*arguments, **options)

    with patch.object(random, "dropout", numbered):
        yield numbers


def sequence() -> keras.Model:
    inputs = keras.Input((4,))
    x = layers.Dropout(0.5, name="a")(layers.Dense(4)(inputs))
    x = layers.Dropout(0.5, name="b")(layers.Dense(4)(layers.Dropout(0.5, name="c")(x)))
    return keras.Model(inputs, layers.Dense(1)(x))


def gradients(model: keras.Model, names: list[list[str]], inputs: Any, *, in_xla: bool = False) -> list[Any]:
    """The loss and the gradients with groups of layers as parts."""
    parts = divide_by_layers(model, [[model.get_layer(name) for name in group] for group in names])

    @tf.function(autograph=False, jit_compile=in_xla)
    def step() -> Any:
        with run_in_parts(parts, Tracing(in_xla)), tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(inputs, training=True))) + tf.add_n([*model.losses, 0.0])
        return [loss, *tape.gradient(loss, model.trainable_variables)]

    return [np.asarray(tf.convert_to_tensor(each)) for each in step()]


def test_a_recomputation_takes_the_draws_of_its_part_again() -> None:
    draws = Draws()
    model = sequence()

    with recorded(draws) as numbers, numbering_draws(draws):
        gradients(model, [["a"], ["b"]], tf.ones([2, 4]))

    assert numbers == [3, 4, 5, 5, 3], "a, c, b; then b and a again, in the order of the gradients"
    assert draws.next_number == 6


def test_masks_reach_the_layers_of_a_part_and_those_after_it() -> None:
    keras.utils.set_random_seed(0)
    seen: list[Any] = []

    class Watching(layers.Layer):
        supports_masking = True

        def call(self, x: Any, mask: Any = None) -> Any:
            seen.append(mask)
            return x * tf.cast(mask, x.dtype)[..., tf.newaxis]

    inputs = keras.Input((3,), dtype="int32")
    x = Watching(name="inside")(layers.Embedding(5, 2, mask_zero=True)(inputs))
    x = layers.Dense(2, name="dense")(x)
    model = keras.Model(inputs, Watching(name="after")(x))
    tokens = tf.constant([[1, 2, 0], [3, 0, 0]])
    plain = gradients(model, [], tokens)
    seen.clear()

    remat = gradients(model, [["inside", "dense"]], tokens)

    assert len(seen) == 3
    assert all(mask is not None for mask in seen)
    for before, after in zip(plain, remat, strict=True):
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("in_xla", [False, True])
def test_an_added_loss_counts_once_with_its_gradient(*, in_xla: bool) -> None:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    x = layers.Dense(4, "tanh", name="first", activity_regularizer="l2")(inputs)
    x = layers.Dense(4, "tanh", name="second", activity_regularizer="l1")(x)
    model = keras.Model(inputs, layers.Dense(1)(x))

    plain = gradients(model, [], tf.ones([2, 4]), in_xla=in_xla)
    remat = gradients(model, [["first", "second"]], tf.ones([2, 4]), in_xla=in_xla)

    for before, after in zip(plain, remat, strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_a_layer_that_is_used_twice_updates_its_averages_twice() -> None:
    def averages(*names: list[str]) -> Any:
        keras.utils.set_random_seed(0)
        inputs = keras.Input((4,))
        shared = layers.BatchNormalization(momentum=0.5, name="shared")
        x = shared(layers.Dense(4, name="dense")(shared(inputs)))
        model = keras.Model(inputs, layers.Dense(1)(x))
        found = gradients(model, list(names), tf.random.stateless_normal([8, 4], [1, 2]))
        return [*found, *(variable.numpy() for variable in shared.variables)]

    for before, after in zip(averages(), averages(["shared", "dense"]), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_several_inputs_and_outputs_of_a_part() -> None:
    keras.utils.set_random_seed(0)
    inputs = {"a": keras.Input((4,), name="a"), "b": keras.Input((4,), name="b")}
    first, second = layers.Dense(3, name="first")(inputs["a"]), layers.Dense(3, name="second")(inputs["b"])
    both = layers.Add(name="both")([first, second])
    model = keras.Model(inputs, layers.Multiply()([both, first]))
    values = {"a": tf.ones([2, 4]), "b": 2 * tf.ones([2, 4])}

    plain = gradients(model, [], values)

    for before, after in zip(plain, gradients(model, [["first", "second", "both"]], values), strict=True):
        np.testing.assert_array_equal(after, before)
