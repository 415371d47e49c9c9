"""Explains why connecting to a TPU failed; without TensorFlow."""

import contextlib
import os
import tempfile
from pathlib import Path

from accel_engine.devices.tpu_chips import find_chips, find_holders
from accel_engine.strategies.tpu_endpoint import TpuEndpoint

_CAUSES = (
    ("No OpKernel", "this TensorFlow has no TPU support: in a fresh environment, pip install 'accel-tui[tpu]'"),
    ("RET_CHECK", "TensorFlow found no usable TPU chip; run accel-tui doctor for details"),
    ("TPU_SYSTEM", "the server there is not a TPU, or its TensorFlow has not started"),
    ("http2 header with status", "the server there is not a TPU but a web server or a proxy"),
    ("urlopen", "only machines in Google Cloud can look up a TPU by name; elsewhere, use grpc://HOST:PORT"),
    ("Google API client", "looking up a TPU by name requires pip install cloud-tpu-client"),
)
"""Parts of TensorFlow's messages and their meaning."""


def explain(endpoint: TpuEndpoint, message: str, root: Path = Path("/"), temporary: Path | None = None) -> str:
    """Return a message with the likely cause of a failed connection.

    Args:
        endpoint: The endpoint.
        message: TensorFlow's error.
        root: Root of the file system with ``sys``, ``dev`` and ``proc``.
        temporary: The directory of temporary files.
    """
    from accel_engine.doctor.lock_holders import describe_process  # imports the whole doctor, and is seldom needed

    holder = _holder(root, temporary or Path(tempfile.gettempdir())) if endpoint.local else None
    if holder is not None:
        who = describe_process(holder) if holder else "a process in another container"
        cause = f"{who} is using the chips, which only one process can use at a time: wait for it or end it"
    else:
        cause = next((cause for words, cause in _CAUSES if words in message), message)
    where = "in this machine" if endpoint.local else f"at {endpoint.target}" if endpoint.addresses else endpoint.target
    return f"cannot connect to the TPU ({where}, from {endpoint.source}): {cause}"


def _holder(root: Path, temporary: Path) -> int | None:
    """The id of another process that holds chips of this machine; 0 for one in another container."""
    from accel_engine.doctor.lock_holders import lock_holder  # see explain
    from accel_engine.doctor.tpu_checks import LOCK

    holders = find_holders(root)
    for chip in find_chips(root):
        for part in holders.of(chip):
            if int(part.id) != os.getpid():
                return int(part.id)
    with contextlib.suppress(OSError):
        return lock_holder(temporary / LOCK)
    return None
