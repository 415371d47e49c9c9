"""Errors of NVIDIA GPUs by their numbers (Xid): what they mean, and those that the kernel's log has."""

import os
import re
from pathlib import Path

from accel_engine.devices.pci_address import normalize_bus_id

RECOVERIES = {
    1: "reset the GPU: sudo nvidia-smi --gpu-reset -i {index}",
    2: "restart the machine",
    3: "stop programs on GPUs that are connected to it, then reset it",
    4: "stop all programs on it, then reset it: sudo nvidia-smi --gpu-reset -i {index}",
}
"""Remedies, by NVML's recovery action."""

_LOGGED = re.compile(r"^(?:\d+,\d+,(\d+),[^;]*;)?.*NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)", re.MULTILINE)
"""A record of the kernel's log: microseconds since the start of the machine, the GPU's bus id without its function, and
the number of the error."""

XIDS = {
    13: ("a program computed something illegal, such as an access beyond an array", "see which program it was"),
    31: ("a program used memory that it does not have", "see which program it was"),
    43: ("a program made an error and was stopped", "see which program it was"),
    45: ("work was removed after another error, or because its program ended", "see the errors before it"),
    48: ("two bits of its memory flipped at once", RECOVERIES[1]),
    62: ("its controller stopped", RECOVERIES[2]),
    63: ("a defect row of its memory is replaced at the next reset", RECOVERIES[1]),
    64: ("a defect row of its memory could not be replaced", "have the GPU replaced"),
    74: ("a connection by NVLink failed", "check the bridges, then reset the GPUs"),
    79: ("it fell off the PCI bus", "check its power and heat and its slot, then restart the machine"),
    94: ("memory was damaged, which ended one program", RECOVERIES[1]),
    95: ("memory was damaged", RECOVERIES[1]),
    119: ("its system processor (GSP) does not respond", RECOVERIES[2]),
    120: ("its system processor (GSP) failed", RECOVERIES[2]),
    140: ("memory was damaged", RECOVERIES[1]),
}
"""Cause and fix by the number of an error, by NVIDIA's table; others are told without a cause."""

BY_PROGRAMS = (13, 31, 43, 45)
"""Numbers of errors that programs cause, and that the GPU survives."""

UNKNOWN = "see NVIDIA's table of Xid errors"

KERNEL_LOG = "dev/kmsg"


def error_text(number: int) -> str:
    """An error in words: ``error 79 (Xid): it fell off the PCI bus``."""
    return f"error {number} (Xid): {XIDS.get(number, (UNKNOWN,))[0]}"


def kernel_errors(root: Path = Path("/"), since: float = 0.0) -> list[tuple[str, int]] | None:
    """The errors in the kernel's log: the PCI bus id of each GPU, and the number; ``None`` if it cannot be read.

    Args:
        root: Root of the file system with ``dev``.
        since: Seconds of the monotonic clock, which is the log's, before which errors do not count.
    """
    if (log := _read_log(root / KERNEL_LOG)) is None:
        return None
    return [
        (normalize_bus_id(f"{match[2]}.0"), int(match[3]))
        for match in _LOGGED.finditer(log)
        if int(match[1] or 0) / 1e6 >= since
    ]


def _read_log(path: Path) -> str | None:
    """Read the messages that the kernel keeps, without waiting for more; ``None`` if they cannot be read."""
    records: list[bytes] = []
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as log:
        while True:
            try:
                record = os.read(log.fileno(), 16384)
            except BrokenPipeError:  # the kernel overwrote the oldest messages meanwhile
                continue
            except BlockingIOError:
                break
            except OSError:
                return None
            if not record:
                break
            records.append(record)
    return b"".join(records).decode(errors="replace")
