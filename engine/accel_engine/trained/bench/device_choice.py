"""The devices and precisions in which models are measured."""

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from accel_engine.errors import UsageError

BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
"""Flags of x86 processors that multiply bfloat16; others convert it, which is slower than float32."""

_BFLOAT16_CAPABILITY = (8, 0)
"""The compute capability from which NVIDIA GPUs multiply bfloat16 (Ampere)."""

_FLOAT16_CAPABILITY = (7, 0)
"""The compute capability from which they have tensor cores for float16 (Volta), as Keras' guide says."""


def device_names(wanted: Sequence[str]) -> list[str]:
    """TensorFlow's names of the devices, such as ``GPU:0``; all GPUs and the CPU unless some are wanted.

    Args:
        wanted: Such as ``cpu``, ``gpu`` or ``gpu:1``; empty for all.

    Raises:
        UsageError: There is no such device.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    found = [*(f"GPU:{index}" for index in range(len(gpus))), "CPU:0"]
    if not wanted:
        return found
    chosen = dict.fromkeys(name for each in wanted for name in found if _is(name, each))
    missing = [each for each in wanted if not any(_is(name, each) for name in found)]
    if missing:
        raise UsageError(f"TensorFlow has no device {missing[0]}: it has {', '.join(found).lower()}")
    return list(chosen)


def _is(name: str, wanted: str) -> bool:
    return wanted.upper() in (name, name.partition(":")[0])


def precisions(device: str, own: str) -> list[str]:
    """The precisions that a device computes fast in, the model's own first.

    Args:
        device: TensorFlow's name.
        own: The model's dtype policy.
    """
    if device.startswith("CPU"):
        fast = ["mixed_bfloat16"] if has_bfloat16() else []
    else:
        gpu = tf.config.list_physical_devices("GPU")[int(device.partition(":")[2])]
        capability = tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
        fast = ["mixed_float16"] * (capability >= _FLOAT16_CAPABILITY)
        fast += ["mixed_bfloat16"] * (capability >= _BFLOAT16_CAPABILITY)
    return list(dict.fromkeys([own, *fast]))


def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bfloat16; ``False`` where the system does not tell."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    return any(flag in flags for flag in BFLOAT16_FLAGS)
