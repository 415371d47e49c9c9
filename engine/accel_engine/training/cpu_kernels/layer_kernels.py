"""Replaces Keras' layers with faster CPU kernels while a step is traced."""

from collections.abc import Iterator
from contextlib import contextmanager

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.private_names.keras_names import all_layers
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.cpu_kernels import batch_norm, convolution


@contextmanager
def use_fast_kernels(assembly: Assembly, *, xla: bool) -> Iterator[None]:
    """Use the faster kernels in the steps that are traced inside the ``with`` block.

    Args:
        assembly: Unchanged if its model has a custom ``train_step``, if it trains on accelerators, or if its plan
            sets ``cpu_kernels`` to ``off``.
        xla: Whether XLA compiles the step; it has its own kernels.
    """
    usable = assembly.on_cpu and assembly.plan.cpu_kernels == "auto" and not (xla or assembly.has_custom_train_step)
    layers = all_layers(assembly.model) if usable else ()
    calls = {
        layer: call for layer in layers for module in (batch_norm, convolution) if (call := module.fast_call(layer))
    }
    with override_calls(calls):
        yield
