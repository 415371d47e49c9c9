"""The environment variables of an engine that is started from the queue.

The process that starts it may have been started by another terminal, or by another engine. Variables that matter to
training come from the terminal where the run was queued. Secrets are not stored: they come from that process.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from accel_engine.devices.cuda_visible_devices import gpu_variables_for, visible_gpus
from accel_engine.devices.device_types import Device

NAMES = frozenset({"GOOGLE_APPLICATION_CREDENTIALS", "PATH", "TMPDIR", "VIRTUAL_ENV"})
"""Variables that matter to training; the credentials are the path of a file."""

PREFIXES = (
    "AWS_",
    "COLAB_",
    "CONDA_",
    "CUDA_",
    "DNNL_",
    "DYLD_",
    "FI_",
    "GCS_",
    "HF_",
    "HIP_",
    "KERAS_",
    "LD_",
    "LIBTPU_",
    "MEGASCALE_",
    "MKL_",
    "NCCL_",
    "NEXT_PLUGGABLE_DEVICE_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "PJRT_",
    "PYTHON",
    "ROCR_",
    "S3_",
    "SLURM_",
    "TFDS_",
    "TF_",
    "TPU_",
    "XLA_",
)
"""Beginnings of the names of others."""

SECRETS = ("ACCESS_KEY", "PASSWORD", "SECRET", "TOKEN")
"""Parts of the names of variables that are not stored."""


def concerns_training(name: str) -> bool:
    """Whether a variable matters to training, and is not a secret."""
    return (name in NAMES or name.startswith(PREFIXES)) and not any(part in name for part in SECRETS)


def chosen_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that matter to training."""
    return {name: value for name, value in environment.items() if concerns_training(name)}


def with_devices(environment: Mapping[str, str], devices: Sequence[str], machine: Sequence[Device]) -> dict[str, str]:
    """The variables of an engine that sees only some GPUs; the user's own choice of GPUs is narrowed.

    Args:
        environment: The variables of the terminal where the run was queued.
        devices: Ids of the engine's devices; other devices than GPUs need no variable.
        machine: The devices of the machine.

    Raises:
        UsageError: The user's choice cannot be understood.
    """
    gpus = [device for device in machine if device.kind == "gpu"]
    if not gpus or not any(device.startswith("gpu:") for device in devices):  # or TensorFlow alone sees them
        return dict(environment)
    names = [gpu.id for gpu in visible_gpus(environment, gpus) if gpu.id in devices]
    return {**environment, **gpu_variables_for(names, gpus, environment)}


@contextmanager
def working_directory(folder: str) -> Iterator[None]:
    """Change the working directory for a block, if there is that directory."""
    before = os.getcwd()
    with suppress(OSError):
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
