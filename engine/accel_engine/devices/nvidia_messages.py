"""Messages for NVML's error codes and throttle reasons."""

from typing import Any

from accel_engine.devices.device_types import CountedItem

REASONS = {
    "UNINITIALIZED": "the driver's library was closed",
    "NOT_SUPPORTED": "this GPU does not report it",
    "NO_PERMISSION": "requires administrator rights",
    "INSUFFICIENT_POWER": "the GPU's power cables are not all connected",
    "DRIVER_NOT_LOADED": "the NVIDIA driver is not loaded",
    "TIMEOUT": "the driver did not answer in time",
    "LIBRARY_NOT_FOUND": "no NVIDIA driver",
    "FUNCTION_NOT_FOUND": "the NVIDIA driver is too old to report it",
    "GPU_IS_LOST": "lost: it no longer responds on the PCI bus",
    "RESET_REQUIRED": "the GPU must be reset before it can be used again",
    "OPERATING_SYSTEM": "the operating system denies access to the GPU",
    "LIB_RM_VERSION_MISMATCH": "the NVIDIA driver was updated; restart the machine to load the new one",
    "UNKNOWN": "unknown error of the NVIDIA driver",
}
"""Messages by the suffix of NVML's error constants."""

_THROTTLE_REASONS = (
    (0x40, "thermal slowdown"),
    (0x20, "software thermal slowdown"),
    (0x80, "power brake slowdown"),
    (0x04, "power limit"),
    (0x200, "board limit"),
    (0x400, "reliability limit"),
    (0x10, "sync boost with a slower GPU"),
    (0x02, "clocks set by an administrator"),
    (0x100, "display clocks"),
)
"""Bits of NVML's clocks event reasons, most severe first. Bit 1, idle, is not throttling."""

_HARDWARE_SLOWDOWN = 0x08
"""Set together with the thermal or the power brake bit, or alone by old GPUs."""


def error_reason(nvml: Any, error: Any) -> str:
    """The message of an NVML error; NVML's own if it is not known here."""
    messages = {getattr(nvml, f"NVML_ERROR_{name}"): message for name, message in REASONS.items()}
    return messages.get(error.value) or f"the NVIDIA driver reports: {error}"


def throttle_reasons(bits: int) -> tuple[CountedItem, ...]:
    """List what throttles a GPU's clocks, most severe first; empty if nothing does or it is idle.

    Args:
        bits: NVML's clocks event reasons.
    """
    reasons = [reason for bit, reason in _THROTTLE_REASONS if bits & bit]
    if bits & _HARDWARE_SLOWDOWN and not bits & (0x40 | 0x80):
        reasons.insert(0, "hardware slowdown (temperature or power)")
    return tuple(CountedItem(each) for each in reasons)
