"""Values that are not finite are found in weights and in the state of the optimizer, under each strategy."""

from types import SimpleNamespace
from typing import Any, cast

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.finiteness import Finiteness


class Masked(keras.layers.Layer):
    def build(self, _: Any) -> None:
        self.mask = self.add_weight(shape=(2,), initializer=keras.initializers.Constant(-np.inf), trainable=False)

    def call(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    "strategy",
    [
        tf.distribute.get_strategy,
        lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
        lambda: tf.distribute.OneDeviceStrategy("CPU:1"),
        lambda: tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]),
    ],
    ids=["default", "mirrored", "one-device", "central-storage"],
)
def test_the_variables_that_are_not_finite_are_named(strategy: Any) -> None:
    with strategy().scope():
        model = keras.Sequential(
            [keras.Input((3,)), Masked(), keras.layers.Dense(2), keras.layers.BatchNormalization()]
        )
        model.compile("adam", "mse")
        model.optimizer.build(model.trainable_variables)
        finiteness = Finiteness(cast(Assembly, SimpleNamespace(model=model)))
        assert finiteness.failures() == []  # the mask was infinite from the start
        kernel, variance = model.layers[1].kernel, model.layers[2].moving_variance
        momentum = model.optimizer.variables[2]
        for variable in (kernel, variance, momentum):
            before = variable.numpy()
            variable.assign(np.where(np.arange(before.size).reshape(before.shape) == 0, np.nan, before))
            assert finiteness.failures() == [variable]
            variable.assign(np.full(before.shape, np.inf))
            assert finiteness.failures() == [variable]
            variable.assign(before)
        assert finiteness.failures() == []


class Counting(keras.layers.Layer):
    def build(self, _: Any) -> None:
        self.count = self.add_weight(shape=(), dtype="int64", initializer="zeros", trainable=False)

    def call(self, x: Any) -> Any:
        return x


def test_weights_that_are_no_floating_point_numbers_are_finite() -> None:
    model = keras.Sequential([keras.Input((3,)), Counting(), keras.layers.Dense(2)])
    model.compile("adam", "mse")

    assert Finiteness(cast(Assembly, SimpleNamespace(model=model))).failures() == []
