"""Measure the memory that a served model takes."""

import ctypes
import gc
import re
from contextlib import suppress
from pathlib import Path

import psutil
import tensorflow as tf


def free_memory() -> None:
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
        """Bytes; ``None`` where the system does not tell."""
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
        """Bytes."""
        return float(tf.config.experimental.get_memory_info(self._device)["peak"])
