"""Reads how much device memory TensorFlow's allocator has in use.

TensorFlow reserves memory from the driver in large blocks and keeps it, so the driver's figure says little about what
a model needs.
"""

import gc
from collections.abc import Iterable
from dataclasses import replace

import keras
import tensorflow as tf

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import TensorFlowDevice


class AllocatedMemory:
    """Adds TensorFlow's allocated memory to the samples of a run's devices.

    The readings are ``allocated`` (bytes now) and ``allocated_peak`` (bytes at most since the run started). CPUs have
    none: TensorFlow does not count their memory.

    Args:
        devices: TensorFlow's devices.
    """

    def __init__(self, devices: Iterable[TensorFlowDevice]) -> None:
        self._names: dict[str, list[str]] = {}
        for device in devices:
            if device.device and device.kind != "cpu":
                self._names.setdefault(device.device, []).append(device.name)

    def add_to(self, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
        """Return the samples, with the two readings added where the device is known."""
        return tuple(
            replace(sample, readings={**sample.readings, **_allocated(self._names[sample.device])})
            if sample.device in self._names
            else sample
            for sample in samples
        )


def _allocated(names: list[str]) -> dict[str, Reading]:
    """The sums over all TensorFlow devices of one piece of hardware, such as a TPU chip's cores."""
    try:
        infos = [tf.config.experimental.get_memory_info(name) for name in names]
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        reason = f"TensorFlow does not report it: {str(error).splitlines()[0]}"
        return {name: Reading.missing(reason, "B") for name in ("allocated", "allocated_peak")}
    return {
        "allocated": Reading(float(sum(info["current"] for info in infos)), "B"),
        "allocated_peak": Reading(float(sum(info["peak"] for info in infos)), "B"),
    }


def release_models() -> None:
    """Release all models, graphs and kernels that nobody refers to any more, and let Keras name layers anew.

    Frames of an exception's traceback refer to a model until nobody handles the exception.
    """
    keras.backend.clear_session(free_memory=False)
    gc.collect()  # models and their graphs refer to each other
