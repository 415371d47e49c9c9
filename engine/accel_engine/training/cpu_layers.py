"""Keras' layers by the kernels that compute them fastest on CPUs, where that was measured to pay: of large batches."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import keras

from accel_engine.training import batch_norm, convolution
from accel_engine.training.assembly import Assembly
from accel_engine.training.layer_call_override import replaced
from accel_engine.training.layer_table import walk


@contextmanager
def faster(assembly: Assembly, *, xla: bool) -> Iterator[None]:
    """Compute layers so in the steps that are traced meanwhile.

    Args:
        assembly: Whose model's own ``train_step`` is left alone, as are steps of others than CPUs.
        xla: Whether XLA compiles the step, which has its own kernels.
    """
    layers = () if xla or assembly.own_train_step or not assembly.on_cpu else _layers(assembly.model)
    calls = {layer: call for layer in layers for kind in (batch_norm, convolution) if (call := kind.faster(layer))}
    with replaced(calls):
        yield


def _layers(model: keras.Model) -> Iterable[Any]:
    """All layers of a model; those within layers that are no models there is no public way to."""
    flatten = getattr(model, "_flatten_layers", None)
    return flatten() if flatten else (layer for layer, _ in walk(model))
