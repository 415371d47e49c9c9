"""Checks NVIDIA GPUs: driver, CUDA libraries, visibility to TensorFlow, free memory."""

import re
import shutil
from pathlib import Path

from packaging.requirements import Requirement

from accel_engine.devices.nvidia_queries import REASONS
from accel_engine.devices.pci_address import is_newer, newest_major, read_word
from accel_engine.devices.tpu_chips import find_chips
from accel_engine.doctor.check import CheckFinding, failed, passed, warned
from accel_engine.doctor.gpu_diagnosis import diagnose_unseen_gpu
from accel_engine.doctor.machine import Driver, Machine
from accel_engine.doctor.tensorflow_checks import installed_packages, requirement_problem
from accel_engine.words import numbers
from accel_engine.words.numbers import percent

NVIDIA = "0x10de"
"""NVIDIA's PCI vendor id."""

DISPLAY = "0x03"
"""Prefix of the PCI class of GPUs."""

CUDA = 12
"""CUDA's major version in all supported TensorFlow builds."""

OLDEST_DRIVER = "525.60.13"
"""The oldest Linux driver that runs CUDA 12; from NVIDIA's CUDA compatibility guide."""

FULL_MEMORY_SHARE = 0.9
"""Share of a GPU's memory in use above which training hardly fits."""

TEGRA = "etc/nv_tegra_release"
"""A file of the system on a Jetson."""

COLAB = "COLAB_RELEASE_TAG"
"""A variable of the environment in Google Colab."""

_RESTART = "restart the machine; if it happens again, check power, cooling and the slot"

_FIXES = {
    REASONS["NO_PERMISSION"]: "have an administrator let you use it: see ls -l /dev/nvidia*, and the job's devices",
    REASONS["OPERATING_SYSTEM"]: "see ls -l /dev/nvidia*, and whether the container or the job was given this GPU",
}
"""What lets the driver describe a GPU, by its problem."""

NOT_NEEDED = "not needed: no NVIDIA GPU"


def check_driver(machine: Machine) -> CheckFinding:
    """Check whether the driver finds the machine's GPUs."""
    driver = machine.driver()
    if driver.gpus:
        return _driver_finding(driver)
    on_bus = _find_pci_functions(machine.root)
    error = driver.problem if driver.problem not in ("no NVIDIA driver", "the NVIDIA driver finds no GPU") else ""
    if not on_bus and not error:
        return _without_any(machine)
    names = ", ".join(function.name for function in on_bus)
    if error and machine.in_wsl:
        return failed(error, "Windows has the driver of WSL2: one for Linux does not work here", "see nvidia.wsl")
    if error:
        cause = f"no GPU can be used{f', although there is one at {names}' if names else ''}"
        return failed(error, cause, "restart the machine; if that does not help, reinstall the driver")
    summary = f"{driver.problem}; on the PCI bus: {names}"
    if machine.in_container and (machine.root / "dev/nvidiactl").exists():
        cause = (
            "the host's GPU was passed to this container without the driver's library NVML: utilization, memory and "
        )
        return warned(
            summary, f"{cause}power are not shown", "start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        )
    if machine.in_container:
        cause = "this is a container, to which the host's GPU was not passed"
        return warned(summary, cause, "start it with --gpus all (Docker with the NVIDIA Container Toolkit)")
    kernel_drivers = {name for function in on_bus if (name := _driver_of(function))}
    if "nouveau" in kernel_drivers:
        cause = "the GPU uses the driver nouveau, which does not support CUDA"
        return failed(summary, cause, "install NVIDIA's driver with the system's package manager and restart")
    if "vfio-pci" in kernel_drivers:
        cause = "the GPU is reserved for virtual machines (driver vfio-pci)"
        return warned(summary, cause, "bind it to the host's driver to train here")
    cause = "the GPU has no driver with CUDA support"
    return failed(summary, cause, "install NVIDIA's driver with the system's package manager and restart")


def _without_any(machine: Machine) -> CheckFinding:
    """The finding where neither the driver nor the PCI bus has a GPU."""
    if (machine.root / TEGRA).exists():
        return passed("a Jetson, whose GPU is on no PCI bus: see nvidia.seen")
    if COLAB in machine.environment and not find_chips(machine.root):
        cause = "this runtime of Colab has no accelerator"
        return warned("no NVIDIA GPU", cause, "choose one: Runtime, Change runtime type, Hardware accelerator")
    return passed("no NVIDIA GPU")


def _driver_finding(driver: Driver) -> CheckFinding:
    names = sorted({gpu.name for gpu in driver.gpus})
    cuda = f" (CUDA up to {driver.cuda[0]}.{driver.cuda[1]})" if driver.cuda[0] else ""
    summary = f"{driver.version or 'unknown version'}{cuda}: {len(driver.gpus)} x {', '.join(names)}"
    if 0 < driver.cuda[0] < CUDA:
        cause = f"the driver is too old for CUDA {CUDA}, which TensorFlow needs"
        return failed(summary, cause, f"install driver {OLDEST_DRIVER} or newer and restart")
    if problems := {gpu.id: gpu.problem for gpu in driver.gpus if gpu.problem}:
        cause = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        fixes = [_FIXES.get(problem, _RESTART) for problem in problems.values()]
        if _RESTART in fixes or len(problems) == len(driver.gpus):
            return failed(summary, cause, _RESTART if _RESTART in fixes else fixes[0])
        return warned(summary, cause, fixes[0])
    return passed(summary)


def _find_pci_functions(root: Path) -> list[Path]:
    """The sysfs directories of NVIDIA GPUs on the PCI bus, with or without a driver."""
    try:
        functions = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return []
    return list(filter(_is_gpu, functions))


def _is_gpu(function: Path) -> bool:
    vendor, kind = read_word(function / "vendor"), read_word(function / "class")
    return vendor.lower() == NVIDIA and kind.lower().startswith(DISPLAY)


def _driver_of(function: Path) -> str:
    try:
        return (function / "driver").readlink().name
    except OSError:
        return ""


def check_libraries(machine: Machine) -> CheckFinding:
    """Check whether the CUDA libraries of this TensorFlow build are installed."""
    if not machine.driver().gpus:
        return _without_gpu(machine.driver())
    installed = installed_packages(machine)
    name = "tensorflow"
    if name not in installed:
        return passed(f"not used by {next(iter(installed))}" if installed else "skipped: TensorFlow is not installed")
    requirements = [each for each in map(Requirement, machine.requirements(name)) if "and-cuda" in str(each.marker)]
    problems = [problem for requirement in requirements if (problem := requirement_problem(machine, requirement))]
    if not problems:
        return passed(f"{len(requirements)} packages, as required by tensorflow {installed[name]}")
    others = f", and {len(problems) - 1} more of {len(requirements)} packages" if len(problems) > 1 else ""
    summary = f"{problems[0]}{others}"
    install = f"run pip install 'tensorflow[and-cuda]=={installed[name]}'"
    no_compiler = any("-cuda-nvcc-" in problem for problem in problems) and not _has_compiler(machine)
    if machine.tensorflow().gpus and no_compiler:
        cause = "TensorFlow finds its GPUs, but XLA cannot compile without ptxas and libdevice"
        return warned(summary, cause, f"{install}, or train with --xla off")
    if machine.tensorflow().gpus:
        return passed("TensorFlow finds CUDA libraries outside its own packages")
    return failed(summary, "TensorFlow uses no GPU unless it finds all of its CUDA libraries", install)


def _without_gpu(driver: Driver) -> CheckFinding:
    """The finding if the driver finds no GPU."""
    if driver.timed_out:
        return warned("unknown", driver.problem, "see nvidia.driver")
    return passed(NOT_NEEDED)


def _has_compiler(machine: Machine) -> bool:
    """Whether the CUDA toolkit is installed, with the parts that XLA uses, where it looks for them."""
    named = re.search(r"--xla_gpu_cuda_data_dir=(\S+)", machine.environment.get("XLA_FLAGS", ""))
    toolkits = (machine.root / "usr/local/cuda", Path("cuda_sdk_lib"), Path(), *([Path(named[1])] if named else ()))
    has_toolkit = any((toolkit / "nvvm/libdevice").is_dir() for toolkit in toolkits)
    return has_toolkit or shutil.which("ptxas", path=machine.environment.get("PATH", "")) is not None


def check_visible_gpus(machine: Machine) -> CheckFinding:
    """Check whether TensorFlow finds the driver's GPUs, and if not, diagnose why."""
    gpus = machine.driver().gpus
    if not installed_packages(machine):
        return passed("skipped: TensorFlow is not installed")
    if not gpus and not machine.tensorflow().gpus:
        if (machine.root / TEGRA).exists():
            return diagnose_unseen_gpu(machine, "TensorFlow does not find the GPU of this Jetson")
        return _without_gpu(machine.driver())
    tensorflow = machine.tensorflow()
    if (newer := _newer_than_build(machine)) is not None:
        return newer
    if len(tensorflow.gpus) > len(gpus):
        reason = machine.driver().problem or f"the NVIDIA driver's library lists {_count(len(gpus))}"
        cause = f"{reason}: training works, but utilization, memory and power are not shown"
        fix = "start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; some virtual GPUs have none"
        if (machine.root / TEGRA).exists():
            fix = "nothing is to mend: a Jetson's driver has no such library; tegrastats shows them"
        return warned(f"TensorFlow finds {_count(len(tensorflow.gpus))}, the driver's library {len(gpus)}", cause, fix)
    if len(tensorflow.gpus) == len(gpus):
        return passed(f"TensorFlow finds {_count(len(tensorflow.gpus))}, as the driver does")
    if not tensorflow.gpus and (tensorflow.problem or tensorflow.timed_out):
        return warned("unknown", "TensorFlow cannot be imported", "see tensorflow.import")
    return diagnose_unseen_gpu(machine, f"TensorFlow finds {len(tensorflow.gpus)} of {_count(len(gpus))}")


def _newer_than_build(machine: Machine) -> CheckFinding | None:
    """The finding if a GPU is of a newer generation than this build of TensorFlow has code for."""
    tensorflow = machine.tensorflow()
    pairs = zip(tensorflow.gpus, tensorflow.capabilities, strict=False)
    newer = [f"{name} ({capability})" for name, capability in pairs if is_newer(capability, tensorflow.built)]
    if not newer:
        return None
    newest = newest_major(tensorflow.built)
    summary = f"too new for tensorflow {tensorflow.version}: {', '.join(newer)}"
    cause = f"it has code up to compute capability {newest}.x: first steps may take half an hour, and XLA aborts"
    fix = "use NVIDIA's TensorFlow container, which has code for it, or a newer TensorFlow; never train with --xla on"
    return warned(summary, cause, fix)


def _count(number: int) -> str:
    return f"{numbers.counted(number, 'GPU')}"


def check_gpu_memory(machine: Machine) -> CheckFinding:
    """Check the free memory of the GPUs, and whether TensorFlow may allocate memory as needed."""
    driver = machine.driver()
    if not driver.gpus:
        return _without_gpu(driver)
    growth = machine.environment.get("TF_FORCE_GPU_ALLOW_GROWTH")
    if growth == "false":
        cause = "TF_FORCE_GPU_ALLOW_GROWTH=false overrides the plan: TensorFlow allocates all of a GPU's memory"
        return warned("memory growth is off", cause, "unset TF_FORCE_GPU_ALLOW_GROWTH")
    if growth not in (None, "true"):
        cause = "TensorFlow only accepts true and false; the plan's setting is used"
        return warned(f"TF_FORCE_GPU_ALLOW_GROWTH={growth}", cause, "unset TF_FORCE_GPU_ALLOW_GROWTH")
    full = [f"{name} {percent(share, 0)}" for name, share in driver.memory_shares if share >= FULL_MEMORY_SHARE]
    if full:
        cause = "other processes use nearly all of the memory"
        return warned(f"in use: {', '.join(full)}", cause, "stop them (nvidia-smi lists them), or choose other GPUs")
    return passed("memory growth is on; every GPU has free memory")
