"""Why there is no connection to a TPU, in words; without TensorFlow."""

import contextlib
import os
import tempfile
from pathlib import Path

from accel_engine.devices.tpu_chips import find_chips, find_holders
from accel_engine.doctor.lock_holders import describe, lock_holder
from accel_engine.doctor.tpu_checks import LOCK
from accel_engine.strategies.tpu_endpoint import TpuEndpoint

_CAUSES = (
    ("No OpKernel", "this TensorFlow has no TPU support: in a fresh environment, pip install 'accel-tui[tpu]'"),
    ("RET_CHECK", "TensorFlow found no TPU chip that it can use; accel-tui doctor says more"),
    ("TPU_SYSTEM", "what answers there is no TPU, or its TensorFlow has not started"),
    ("http2 header with status", "what answers there is no TPU, but a web server or a proxy"),
    ("urlopen", "only a machine in Google Cloud can look a TPU up by its name; elsewhere, name its grpc://HOST:PORT"),
    ("Google API client", "to look a TPU up by its name, pip install cloud-tpu-client"),
)
"""What TensorFlow says, in part, and what it means."""


def explain(endpoint: TpuEndpoint, message: str, root: Path = Path("/"), temporary: Path | None = None) -> str:
    """Say that there is no connection, and the likely cause.

    Args:
        endpoint: The endpoint that was tried.
        message: What went wrong.
        root: Of the file system that holds ``sys``, ``dev`` and ``proc``.
        temporary: The directory of temporary files.
    """
    holder = _holder(root, temporary or Path(tempfile.gettempdir())) if endpoint.local else None
    if holder is not None:
        who = describe(holder) if holder else "a process of another container"
        cause = f"{who} holds the chips, which one process at a time can use: wait for it, or end it"
    else:
        cause = next((cause for words, cause in _CAUSES if words in message), message)
    where = "of this machine" if endpoint.local else f"at {endpoint.target}" if endpoint.addresses else endpoint.target
    return f"not connected to a TPU ({where}, named by {endpoint.source}): {cause}"


def _holder(root: Path, temporary: Path) -> int | None:
    """A process other than this one that holds chips of this machine; 0 for one of another container."""
    found = find_holders(root)
    for chip in find_chips(root):
        for part in found.of(chip):
            if int(part.id) != os.getpid():
                return int(part.id)
    with contextlib.suppress(OSError):
        return lock_holder(temporary / LOCK)
    return None
