"""Finds the installed TensorFlow, and GPUs that it may see, without importing it."""

import contextlib
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.device_types import Device

DISTRIBUTIONS = {
    "tensorflow": "",
    "tensorflow-cpu": "cpu",
    "tensorflow-tpu": "tpu",
}
"""The distributions that contain the package ``tensorflow``, and what they are built for."""

_LIBTPU = ("lib/libtpu.so", "usr/lib/libtpu.so")
"""Where the images of Google's TPU VMs have the chips' library, beside a TensorFlow for TPUs named ``tensorflow``."""

GPU_FILES = tuple(map(Path, ("/dev/nvidiactl", "/dev/nvmap", "/etc/nv_tegra_release")))
"""Files of a machine or a container that may have a GPU that NVML does not list; the last two are a Jetson's."""

OLDEST, NEWEST = (2, 19), (2, 21)
"""The range of supported TensorFlow versions."""

CONTAINER = (
    "NVIDIA's container (docker run --gpus all -it IMAGE, where IMAGE is the one named TensorFlow in the NGC catalog; "
    f"choose one with TensorFlow {'.'.join(map(str, OLDEST))} or newer), and install accel-tui in it"
)
"""How to get a TensorFlow that NVIDIA has built."""

ARM = ("aarch64", "arm64")
"""Processors for which TensorFlow has no pip package with CUDA."""

INSTALL_COMMANDS = "pip install 'accel-tui[cpu]' (or [cuda], [tpu])"


@dataclass(frozen=True, slots=True)
class Installation:
    """The installed TensorFlow."""

    distribution: str = ""
    """Name of the installed distribution; empty if there is none."""
    version: str = ""
    problem: str = ""
    """Why no engine can start, with a fix, in one line; empty if one can."""


def cuda_cure(elsewhere: str, processor: str = "") -> str:
    """How to get a TensorFlow, or parts of CUDA for it, that uses NVIDIA GPUs.

    Args:
        elsewhere: What helps on processors for which there are pip packages with CUDA.
        processor: The kind of processor; this machine's by default.
    """
    return f"use {CONTAINER}" if (processor or platform.machine()) in ARM else elsewhere


def installed_versions(*distributions: str) -> dict[str, str]:
    """The versions of those distributions that are installed, by name, without importing them."""
    from importlib import metadata  # slow to import; used in a thread

    found = {}
    for name in distributions:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def find_installation() -> Installation:
    """Find the installed TensorFlow without importing it."""
    found = installed_versions(*DISTRIBUTIONS)
    if not found:
        return Installation(problem=f"TensorFlow is not installed: {INSTALL_COMMANDS}")
    if len(found) > 1 and "tensorflow-tpu" in found:
        return Installation(
            problem=f"{' and '.join(found)} overwrite each other: install one of them in a fresh virtual environment"
        )
    name, version = next(iter(found.items()))
    return Installation(name, version)


def may_have_unlisted_gpus(devices: Iterable[Device]) -> bool:
    """Whether TensorFlow may see GPUs although NVML lists none, as on a Jetson.

    Args:
        devices: The devices of this machine that were found.
    """
    return not any(device.kind == "gpu" for device in devices) and any(file.exists() for file in GPU_FILES)


def with_unlisted_gpus(devices: Sequence[Device], named: Iterable[str]) -> Sequence[Device]:
    """Add the GPUs that a plan names and no driver lists, as on a Jetson: only TensorFlow knows whether they exist.

    Args:
        devices: The devices that were found.
        named: The plan's devices.
    """
    gpus = [name.lower() for name in named if name.lower().startswith("gpu:")]
    if not gpus or not may_have_unlisted_gpus(devices) or find_installation().distribution == "tensorflow-cpu":
        return devices
    return (*devices, *(Device(name, "gpu", "GPU") for name in gpus))


def supports_tpus(distribution: str, root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a distribution may train on a TPU of this machine, as far as that can be told without importing it.

    Args:
        distribution: Its name.
        root: Root of the file system.
        environment: Environment variables.
    """
    if distribution != "tensorflow":
        return distribution == "tensorflow-tpu"
    named = environment.get("TPU_LIBRARY_PATH", "")
    return any(path.is_file() for path in (*((Path(named),) if named else ()), *(root / name for name in _LIBTPU)))
