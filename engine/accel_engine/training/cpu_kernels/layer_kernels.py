"""Replaces Keras' layers with faster CPU kernels while a step is traced."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.private_names.keras_names import all_layers
from accel_engine.training.cpu_kernels import batch_norm, convolution


@contextmanager
def use_fast_kernels(model: keras.Model) -> Iterator[None]:
    """Use the faster kernels in the steps of a model that are traced inside the ``with`` block."""
    calls = {
        layer: call
        for layer in all_layers(model)
        for module in (batch_norm, convolution)
        if (call := module.fast_call(layer))
    }
    with override_calls(calls):
        yield
