"""What NVML's numbers mean, in the user's words."""

from typing import Any

from accel_engine.devices.reading import CountedItem

_REASONS = {
    "UNINITIALIZED": "the driver's library was closed",
    "NOT_SUPPORTED": "this GPU does not report it",
    "NO_PERMISSION": "only an administrator may read it",
    "INSUFFICIENT_POWER": "the GPU's power cables are not all connected",
    "DRIVER_NOT_LOADED": "the NVIDIA driver is not loaded",
    "TIMEOUT": "the driver did not answer in time",
    "LIBRARY_NOT_FOUND": "no NVIDIA driver",
    "FUNCTION_NOT_FOUND": "the NVIDIA driver is too old to report it",
    "GPU_IS_LOST": "lost: it no longer answers on its bus",
    "RESET_REQUIRED": "the GPU must be reset before it can be used again",
    "OPERATING_SYSTEM": "the operating system forbids access to the GPU",
    "LIB_RM_VERSION_MISMATCH": "the NVIDIA driver was updated; restart the machine to load the new one",
    "UNKNOWN": "the NVIDIA driver failed without saying why",
}
"""What NVML's errors mean, by the end of their constants' names."""

_SLOWED = (
    (0x40, "too hot"),
    (0x20, "warm: held below its temperature limit"),
    (0x80, "power brake: the supply asked for less"),
    (0x04, "power limit"),
    (0x200, "board limit"),
    (0x400, "reliability limit"),
    (0x10, "in step with a slower GPU (sync boost)"),
    (0x02, "clocks set by an administrator"),
    (0x100, "clocks of a display"),
)
"""Bits of NVML's clocks event reasons, the gravest first. Being idle, bit 1, is nothing that slows work."""

_HARDWARE_SLOWDOWN = 0x08
"""Set together with the bit that says why it is too hot or short of power, or alone by old GPUs."""


def reason(nvml: Any, error: Any) -> str:
    """An error of NVML in the user's words, or else in NVML's own."""
    meanings = {getattr(nvml, f"NVML_ERROR_{name}"): words for name, words in _REASONS.items()}
    return meanings.get(error.value) or f"the NVIDIA driver says: {error}"


def throttling(bits: int) -> tuple[CountedItem, ...]:
    """Say what keeps a GPU's clocks down, the gravest first; nothing when it runs freely or is idle.

    Args:
        bits: NVML's clocks event reasons.
    """
    words = [words for bit, words in _SLOWED if bits & bit]
    if bits & _HARDWARE_SLOWDOWN and not bits & (0x40 | 0x80):
        words.insert(0, "too hot or short of power (hardware slowdown)")
    return tuple(CountedItem(each) for each in words)
