"""Measures memory: what TensorFlow's allocator has in use, and what models take on a host and on devices."""

import ctypes
import gc
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import keras
import psutil
import tensorflow as tf

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import TensorFlowDevice


def release_memory() -> None:
    """Free the memory of models that are not used any more, and give it back to the system where the C library can."""
    gc.collect()
    with suppress(AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class HostMemory:
    """The growth of this process's resident memory from its creation to the peak between start and stop.

    Linux tells the peak (``VmHWM``) and lets a process reset it. The memory that the process has freed but not given
    back counts as well, so that a batch size after a larger one has its memory, too.

    Args:
        loaded: Bytes of the model's weights, if they are in memory already: they count, too.
        proc: The process's directory in ``/proc``.
    """

    def __init__(self, loaded: int = 0, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc
        self._loaded = loaded
        self._before = psutil.Process().memory_info().rss
        self._is_reset = False

    def start(self) -> None:
        """Forget the peak so far."""
        self._is_reset = False
        with suppress(OSError):  # not Linux, or not permitted in a container
            (self._proc / "clear_refs").write_text("5")
            self._is_reset = True

    def stop(self) -> float | None:
        """The growth in bytes; ``None`` where the system does not tell."""
        with suppress(OSError):
            found = re.search(r"VmHWM:\s+(\d+) kB", (self._proc / "status").read_text())
            if found and self._is_reset:
                return self._loaded + max(0.0, float(1024 * int(found[1]) - self._before))
        return None


class DeviceMemory:
    """The peak of the memory that TensorFlow has allocated on a device, with the weights.

    Args:
        device: TensorFlow's name, such as ``GPU:0``.
    """

    def __init__(self, device: str) -> None:
        self._device = device

    def start(self) -> None:
        """Forget the peak so far."""
        tf.config.experimental.reset_memory_stats(self._device)

    def stop(self) -> float:
        """The peak in bytes."""
        return float(tf.config.experimental.get_memory_info(self._device)["peak"])


class AllocatedMemory:
    """Adds TensorFlow's allocated memory to the samples of a run's devices.

    The readings are ``allocated`` (bytes now) and ``allocated_peak`` (the most since the process started). CPUs have
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
