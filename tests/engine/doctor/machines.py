"""Twelve machines with one thing wrong, of which the doctor shall find the cause: ``python -m MODULE machine 1..12``.

Their driver, TensorFlow, packages, variables and files are constructed; limits and memory are ample. The numbers are in
no order, so that whoever reads what the doctor prints knows no more than a user of that machine.
"""

import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from accel_engine.devices.nvidia_queries import REASONS
from accel_engine.doctor import Machine, checks_of, system_checks
from accel_engine.doctor.check_inputs import Driver, GpuSettings
from accel_engine.doctor.python_checks import Interpreter
from accel_engine.doctor.tf_probe import TensorFlowDevices
from accel_tui.cli import main

from .conftest import GIB, gpu, make_machine, pci

BUILT = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
"""The compute capabilities of TensorFlow 2.21's package with CUDA."""

NEEDED = {"protobuf": "6.33.1", "numpy": "2.3.5", "h5py": "3.14.0"}

COMMON = NEEDED | {"keras": "3.15.1", "pyarrow": "24.0.0", "grpcio": "1.76.0"}

CUDA = COMMON | {"tensorflow": "2.21.0", "nvidia-cublas-cu12": "12.5.3.2", "nvidia-cudnn-cu12": "9.3.0.75"}

PLAIN = COMMON | {"tensorflow": "2.21.0"}
"""The same without CUDA's packages."""

REQUIREMENTS = (
    *NEEDED,
    'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
)

TPU = COMMON | {"tensorflow-tpu": "2.20.0", "libtpu": "0.0.31"}


def tensorflow(
    *gpus: str, capability: str = "", cuda: str = "12.5.1", log: str = "", version: str = "2.21.0"
) -> TensorFlowDevices:
    """The answer of TensorFlow."""
    site = "/home/user/venv/lib/python3.12/site-packages/tensorflow/__init__.py"
    known = (capability,) * len(gpus)
    return TensorFlowDevices(version, site, "3.15.1", cuda, gpus, 3.1, log=log, capabilities=known, built=BUILT)


def healthy(*indices: int, mig: bool = False, links: int = 0) -> dict[str, Any]:
    """What the driver tells of GPUs that work: their settings, and how much of their memory is in use."""
    return {
        "settings": tuple(
            GpuSettings(f"gpu:{each}", 0, True, mig, 0, 400.0, 400.0, False, False, False, 0, links) for each in indices
        ),
        "memory_shares": tuple((f"gpu:{each}", 0.01) for each in indices),
    }


def add_gpu(folder: Path, address: str = "0000:01:00.0") -> Path:
    """Put a GPU on the PCI bus, with the files that CUDA opens.

    Returns:
        The root of the file system.
    """
    root = folder / "root"
    pci(root, address, "0x10de", **{"class": "0x030200"})
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        touch(root / "dev" / name)
    return root


def add_chips(folder: Path, device: str, count: int) -> None:
    """Put TPU chips on the PCI bus, each with its file."""
    for index in range(count):
        function = pci(
            folder / "root", f"0000:00:{4 + index:02x}.0", "0x1ae0", device=device, subsystem_device="0x0000"
        )
        group = folder / "root/sys/kernel/iommu_groups" / str(index)
        group.mkdir(parents=True)
        (function / "iommu_group").symlink_to(group)
        touch(folder / "root/dev/vfio" / str(index))


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def blackwell(folder: Path) -> Machine:
    add_gpu(folder)
    name = "NVIDIA GeForce RTX 5090"
    driver = Driver("575.57.08", (12, 9), (gpu(0, name, memory=32 * GIB),), **healthy(0))
    return make_machine(folder, CUDA, REQUIREMENTS, driver=driver, tensorflow=tensorflow(name, capability="12.0"))


def wsl2(folder: Path) -> Machine:
    for path in ("dev/dxg", "usr/lib/wsl/lib/libcuda.so.1", "usr/lib/x86_64-linux-gnu/libcuda.so.1"):
        touch(folder / "root" / path)
    log = "E cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    driver = Driver(problem=REASONS["DRIVER_NOT_LOADED"])
    return make_machine(folder, CUDA, REQUIREMENTS, driver=driver, tensorflow=tensorflow(log=log))


def without_utility(folder: Path) -> Machine:
    touch(add_gpu(folder) / ".dockerenv")
    driver = Driver(problem=REASONS["LIBRARY_NOT_FOUND"])
    found = tensorflow("NVIDIA L4", capability="8.9")
    return make_machine(folder, CUDA, REQUIREMENTS, driver=driver, tensorflow=found)


def jetson(folder: Path) -> Machine:
    touch(folder / "root/etc/nv_tegra_release")
    python = Interpreter((3, 12, 3), system="Linux aarch64")
    driver = Driver(problem=REASONS["LIBRARY_NOT_FOUND"])
    return make_machine(
        folder, PLAIN, REQUIREMENTS, driver=driver, tensorflow=tensorflow("Orin", capability="8.7"), python=python
    )


def mig(folder: Path) -> Machine:
    add_gpu(folder)
    driver = Driver("570.133.20", (12, 8), (gpu(0, "NVIDIA A100-SXM4-80GB"),), **healthy(0, mig=True))
    log = "E cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    return make_machine(folder, CUDA, REQUIREMENTS, driver=driver, tensorflow=tensorflow(log=log))


def lost_gpu(folder: Path) -> Machine:
    for index in range(3):
        add_gpu(folder, f"0000:{index:02x}:00.0")
    told = healthy(0, 1, 2, links=18)
    told["settings"] += (GpuSettings("gpu:3"),)
    lost = gpu(3, "GPU", memory=None, address="", problem=REASONS["GPU_IS_LOST"])
    driver = Driver("570.133.20", (12, 8), (gpu(0), gpu(1), gpu(2), lost), **told)
    found = tensorflow(*["NVIDIA H100 80GB HBM3"] * 3, capability="9.0")
    return make_machine(folder, CUDA, REQUIREMENTS, driver=driver, tensorflow=found)


def tpu_vm(folder: Path) -> Machine:
    add_chips(folder, "0x0063", 8)
    packages = COMMON | {"tensorflow-cpu": "2.21.0"}
    return make_machine(
        folder, packages, tuple(NEEDED), tensorflow=tensorflow(cuda=""), environment={"TPU_NAME": "local"}
    )


def tpu_slice(folder: Path) -> Machine:
    add_chips(folder, "0x0063", 4)
    environment = {"TPU_NAME": "my-v5e-16", "TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "10.0.0.2,10.0.0.3"}
    return make_machine(
        folder, TPU, tuple(NEEDED), tensorflow=tensorflow(cuda="", version="2.20.0"), environment=environment
    )


def colab(folder: Path) -> Machine:
    python = Interpreter((3, 12, 11), virtual=False)
    environment = {"COLAB_RELEASE_TAG": "release-colab_20251101", "COLAB_GPU": ""}
    return make_machine(folder, CUDA, REQUIREMENTS, tensorflow=tensorflow(), environment=environment, python=python)


def aarch64(folder: Path) -> Machine:
    add_gpu(folder)
    name, python = "NVIDIA GH200 480GB", Interpreter((3, 12, 3), system="Linux aarch64")
    driver = Driver("570.133.20", (12, 8), (gpu(0, name),), **healthy(0))
    return make_machine(folder, PLAIN, REQUIREMENTS, driver=driver, tensorflow=tensorflow(cuda=""), python=python)


def macos(folder: Path) -> Machine:
    python = Interpreter((3, 12, 11), system="Darwin arm64")
    problem = "TensorFlow and PyArrow crash a process that loads both"
    return make_machine(folder, PLAIN, REQUIREMENTS, tensorflow=tensorflow(cuda=""), python=python, arrow=problem)


def broken_wheel(folder: Path) -> Machine:
    site = "/home/user/venv/lib/python3.12/site-packages/tensorflow"
    problem = "AttributeError: module 'tensorflow' has no attribute '__version__'"
    return make_machine(
        folder, PLAIN, REQUIREMENTS, tensorflow=TensorFlowDevices(file=site, problem=problem, log=problem)
    )


MACHINES: dict[int, Callable[[Path], Machine]] = {
    1: mig,
    2: macos,
    3: tpu_slice,
    4: without_utility,
    5: aarch64,
    6: broken_wheel,
    7: wsl2,
    8: lost_gpu,
    9: colab,
    10: tpu_vm,
    11: jetson,
    12: blackwell,
}


@contextmanager
def an_ample_host() -> Iterator[None]:
    """Give the checks of the system memory, swap, limits and files of a large machine, whatever this one has."""
    memory = SimpleNamespace(total=512 * GIB, available=480 * GIB)
    with ExitStack() as patches:
        for target, name, value in (
            (system_checks.psutil, "virtual_memory", lambda: memory),
            (system_checks.psutil, "swap_memory", lambda: SimpleNamespace(total=8 * GIB)),
            (system_checks, "available_memory", lambda: 480 * GIB),
            (system_checks, "processors", lambda: 32),
            (resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
        ):
            patches.enter_context(patch.object(target, name, value))
        yield


def examine(number: int) -> int:
    """Print what ``accel-tui doctor`` prints on a machine.

    Returns:
        Its exit status.
    """
    with tempfile.TemporaryDirectory() as folder, an_ample_host():
        machine = MACHINES[number](Path(folder))
        machine.home.mkdir()
        checks = patch("accel_tui.cli.doctor.checks_of", lambda *, deep: checks_of(machine, deep=deep))
        with checks, patch("accel_tui.cli.doctor.terminal_checks.checks", tuple):  # this terminal is no part of it
            return main(["doctor"])


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "machine" or sys.argv[2] not in map(str, MACHINES):
        sys.exit(f"usage: python -m {__spec__.name} machine 1..{len(MACHINES)}")
    os.environ.pop("VIRTUAL_ENV", None)
    sys.exit(examine(int(sys.argv[2])))
