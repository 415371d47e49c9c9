"""Keeps recurrent layers from using cuDNN while XLA's program is traced.

On a GPU, Keras runs LSTM and GRU layers with cuDNN's operations, which XLA cannot compile. Without them, such a layer
is a loop over the time steps.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from accel_engine.private_names.keras_names import all_layers


@contextmanager
def without_cudnn(model: keras.Model) -> Iterator[None]:
    """Use no cuDNN operations in the steps of a model that are traced inside the ``with`` block."""
    layers = [layer for layer in all_layers(model) if getattr(layer, "use_cudnn", False)]
    chosen = [layer.use_cudnn for layer in layers]
    try:
        for layer in layers:
            layer.use_cudnn = False
        yield
    finally:
        for layer, own in zip(layers, chosen, strict=True):
            layer.use_cudnn = own
