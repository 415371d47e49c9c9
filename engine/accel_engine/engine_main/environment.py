"""Prepares an engine process: environment variables for TensorFlow and CUDA, and Linux' scheduling policy."""

import contextlib
import os
from pathlib import Path

from accel_engine.devices.cuda_visible_devices import ORDER, VISIBLE
from accel_engine.devices.tpu_chips import find_chips

ENVIRONMENT = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # number GPUs as the driver's tools do
    "TF_CPP_MIN_LOG_LEVEL": "1",
    # TensorFlow enables these kernels by default only on CPUs with AVX-512. They were 1.3 to 3 times
    # as fast on a CPU without it (benchmarks/README.md).
    "TF_ENABLE_ONEDNN_OPTS": "1",
}
"""Defaults of variables that the user has not set."""


OFF_CLOUD = {"TPU_SKIP_MDS_QUERY": "1"}
"""The same on machines without a TPU chip, where libtpu would query Google Cloud for minutes at import."""


def prepare(root: Path = Path("/")) -> None:
    """Set the variables of this process, before TensorFlow is imported.

    Args:
        root: Root of the file system with ``sys``, where TPU chips are searched for.
    """
    if not find_chips(root):
        os.environ |= {name: os.environ.get(name, value) for name, value in OFF_CLOUD.items()}
    os.environ |= {name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()}
    if not any(entry.strip().isdecimal() for entry in os.environ.get(VISIBLE, "").split(",")):
        os.environ[ORDER] = "PCI_BUS_ID"  # nothing that the user has named depends on it
    os.environ["KERAS_BACKEND"] = "tensorflow"


def set_batch_scheduling() -> None:
    """Use ``SCHED_BATCH`` for this process and its children; does nothing on other systems than Linux.

    Threads that wake up, as those of training often do, then no longer preempt interactive programs (see sched(7)). The
    process's share of the CPUs stays the same; a lower priority (``nice``) would also reduce that.
    """
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or not permitted in a container
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
