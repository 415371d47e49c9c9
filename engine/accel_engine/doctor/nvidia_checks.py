"""Checks NVIDIA GPUs: driver, CUDA libraries, visibility to TensorFlow, free memory."""

import re
import shutil
from pathlib import Path

from packaging.requirements import Requirement

from accel_engine.devices.installation import CONTAINER, cuda_cure
from accel_engine.devices.nvidia_queries import NVML, NVML_PROBLEMS, REASONS
from accel_engine.devices.pci_address import is_newer, newest_major
from accel_engine.devices.tpu_chips import find_chips
from accel_engine.doctor.check import CheckFinding, CheckResult, failed, passed, skipped, warned
from accel_engine.doctor.check_inputs import Driver, Machine
from accel_engine.doctor.gpu_diagnosis import diagnose_unseen_gpu
from accel_engine.doctor.tensorflow_checks import installed_packages, requirement_problem
from accel_engine.words import numbers
from accel_engine.words.numbers import percent

CUDA = 12
"""CUDA's major version in all supported TensorFlow builds."""

OLDEST_DRIVER = "525.60.13"
"""The oldest Linux driver that runs CUDA 12; from NVIDIA's CUDA compatibility guide."""

FULL_MEMORY_SHARE = 0.9
"""Share of a GPU's memory in use above which training hardly fits."""

LINUX_DRIVERS = ("usr/lib/x86_64-linux-gnu/libcuda.so.1", "usr/lib64/libcuda.so.1")
"""Where distributions of Linux install CUDA's driver."""

_RESTART = "restart the machine; if it happens again, check power, cooling and the slot"

_FIXES = {
    REASONS["NO_PERMISSION"]: "have an administrator let you use it: see ls -l /dev/nvidia*, and the job's devices",
    REASONS["OPERATING_SYSTEM"]: "see ls -l /dev/nvidia*, and whether the container or the job was given this GPU",
}
"""Remedies that let the driver describe a GPU, by its problem."""

NOT_NEEDED = "not needed: no NVIDIA GPU"


def check_driver(machine: Machine) -> CheckFinding:
    """Check whether the driver finds the machine's GPUs."""
    driver = machine.driver()
    if driver.gpus:
        return _driver_finding(driver)
    names = ", ".join(function.name for function in machine.pci_gpus)
    error = "" if driver.problem in NVML_PROBLEMS else driver.problem
    if machine.in_wsl and check_wsl(machine).verdict is not CheckResult.PASS:
        if _linux_drivers(machine):
            cause = f"it finds no GPU: {driver.problem}"
            return failed("a Linux driver inside WSL2 hides the one of Windows", cause, "see nvidia.wsl")
        return skipped("not checked: see nvidia.wsl")
    if _is_seen(machine) or (
        machine.in_container and names and not error and (machine.root / "dev/nvidiactl").exists()
    ):
        return _without_nvml(machine, names)
    if not names and not error:
        return _without_any(machine)
    if error:
        cause = f"no GPU can be used{f', although there is one at {names}' if names else ''}"
        again = f"reinstall the driver{' in Windows' if machine.in_wsl else ''}"
        return failed(error, cause, f"restart the machine; if that does not help, {again}")
    summary = f"no NVIDIA driver responds; GPU on the PCI bus: {names}"
    if machine.in_container:
        cause = "this is a container, to which the host's GPU was not passed"
        return warned(summary, cause, "start it with --gpus all (Docker with the NVIDIA Container Toolkit)")
    kernel_drivers = {name for function in machine.pci_gpus if (name := _driver_of(function))}
    if "nouveau" in kernel_drivers:
        cause = "the GPU uses the driver nouveau, which does not support CUDA"
        return failed(summary, cause, "install NVIDIA's driver with the system's package manager and restart")
    if "vfio-pci" in kernel_drivers:
        cause = "the GPU is reserved for virtual machines (driver vfio-pci)"
        return warned(summary, cause, "bind it to the host's driver to train here")
    cause = "the GPU has no driver with CUDA support"
    return failed(summary, cause, "install NVIDIA's driver with the system's package manager and restart")


def _without_nvml(machine: Machine, names: str) -> CheckFinding:
    """The finding where programs can use a GPU, but NVML does not list it.

    Args:
        machine: The machine.
        names: The addresses of its GPUs on the PCI bus; empty if there are none.
    """
    problem = machine.driver().problem
    lacks = NVML_PROBLEMS.get(problem, f"{NVML} fails: {problem}")
    if machine.is_jetson:
        return passed("a Jetson: training uses its GPU; for utilization, memory and power run tegrastats")
    uses = "training uses the GPU, but its" if _is_seen(machine) else "for training see nvidia.seen; the GPU's"
    cause = f"{uses} utilization, memory and power are not shown"
    fix = "install the driver's library libnvidia-ml.so.1, if the GPU has one: some virtual GPUs have none"
    if machine.in_container:
        fix = "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return warned(f"{lacks}{f'; GPU on the PCI bus: {names}' if names else ''}", cause, fix)


def _without_any(machine: Machine) -> CheckFinding:
    """The finding where neither the driver nor the PCI bus has a GPU."""
    if machine.is_jetson:
        return skipped("a Jetson, whose GPU is on no PCI bus: see nvidia.seen")
    if machine.in_colab and not find_chips(machine.root):
        cause = "this runtime of Colab has no accelerator"
        fix = "choose one (Runtime, Change runtime type, Hardware accelerator), then install everything again: the new "
        return warned("no NVIDIA GPU", cause, f"{fix}runtime is another machine")
    if machine.is_mac and installed_packages(machine) and machine.tensorflow().version:
        if gpus := machine.tensorflow().gpus:
            return skipped(f"no NVIDIA GPU; TensorFlow finds {_count(len(gpus))} of this Mac by a plugin")
        return skipped("no NVIDIA GPU; TensorFlow finds no other GPU of this Mac either, and trains on the CPU")
    return skipped("no NVIDIA GPU")


def _is_seen(machine: Machine) -> bool:
    """Whether TensorFlow finds an NVIDIA GPU; the builds for CPUs and TPUs are not asked, which takes seconds."""
    may_have_cuda = set(installed_packages(machine)) - {"tensorflow-cpu", "tensorflow-tpu"}
    return bool(may_have_cuda) and not machine.is_mac and bool(machine.tensorflow().gpus)


def check_wsl(machine: Machine) -> CheckFinding:
    """Check whether Windows' driver is used in WSL2, and not one for Linux."""
    if not machine.in_wsl:
        return skipped("not needed: not WSL2")
    library = "usr/lib/wsl/lib/libcuda.so.1"
    if not (machine.root / library).exists():
        fix = "if it has an NVIDIA GPU, install NVIDIA's driver in Windows, then run wsl --shutdown there"
        return warned(f"/{library} is missing", "Windows passes no CUDA driver to WSL2", fix)
    if found := _linux_drivers(machine):
        fix = (
            "remove it: sudo apt purge 'nvidia-driver-*' 'libnvidia-*'; then run wsl --shutdown in Windows, start WSL2 "
        )
        cause = "a driver for Linux is installed in WSL2, and hides Windows' own"
        return failed(f"{found[0]} is not Windows' driver", cause, f"{fix}again, and check that nvidia-smi lists GPUs")
    return passed("WSL2 with Windows' driver")


def _linux_drivers(machine: Machine) -> list[str]:
    """The drivers for Linux that are installed."""
    return [f"/{path}" for path in LINUX_DRIVERS if (machine.root / path).exists()]


def _driver_finding(driver: Driver) -> CheckFinding:
    names = sorted({gpu.name for gpu in driver.gpus if not gpu.problem} or {gpu.name for gpu in driver.gpus})
    cuda = f" (CUDA up to {driver.cuda[0]}.{driver.cuda[1]})" if driver.cuda[0] else ""
    count = f"{len(driver.gpus)} x"
    if problems := {gpu.id: gpu.problem for gpu in driver.gpus if gpu.problem}:
        which = "not responding" if set(problems.values()) == {REASONS["GPU_IS_LOST"]} else "not usable"
        count = f"{len(driver.gpus) - len(problems)} of {_count(len(driver.gpus))}, {len(problems)} {which}:"
    summary = f"{driver.version or 'unknown version'}{cuda}: {count} {', '.join(names)}"
    if 0 < driver.cuda[0] < CUDA:
        cause = f"the driver is too old for CUDA {CUDA}, which TensorFlow needs"
        return failed(summary, cause, f"install driver {OLDEST_DRIVER} or newer and restart")
    if problems:
        cause = "; ".join(
            f"{name} (number {index_of(name)} in nvidia-smi): {problem}" for name, problem in problems.items()
        )
        fixes = [_FIXES.get(problem, _RESTART) for problem in problems.values()]
        if _RESTART in fixes or len(problems) == len(driver.gpus):
            return failed(summary, cause, _RESTART if _RESTART in fixes else fixes[0])
        return warned(summary, cause, fixes[0])
    return passed(summary)


def _driver_of(function: Path) -> str:
    try:
        return (function / "driver").readlink().name
    except OSError:
        return ""


def check_libraries(machine: Machine) -> CheckFinding:
    """Check whether the CUDA libraries of this TensorFlow build are installed."""
    if not machine.driver().gpus and not _is_seen(machine):
        return without_gpu(machine)
    installed = installed_packages(machine)
    name = "tensorflow"
    if name not in installed:
        return skipped(
            f"not needed: {next(iter(installed))} has no CUDA"
            if installed
            else "not checked: TensorFlow is not installed"
        )
    tensorflow = machine.tensorflow()
    if tensorflow.version and not tensorflow.cuda:
        return skipped("not needed: this TensorFlow is built without CUDA")
    requirements = [each for each in map(Requirement, machine.requirements(name)) if "and-cuda" in str(each.marker)]
    problems = [problem for requirement in requirements if (problem := requirement_problem(machine, requirement))]
    if requirements and not problems:
        count = numbers.counted(len(requirements), "pip package")
        return passed(f"{count} with CUDA's libraries, as {name} {installed[name]} requires")
    no_compiler = any("-cuda-nvcc-" in problem for problem in problems) and not _has_compiler(machine)
    if tensorflow.gpus and not no_compiler:
        return passed("TensorFlow finds CUDA's libraries outside its own pip packages, e.g. the system's")
    if not problems:
        return skipped(f"not checked: {name} {installed[name]} names no pip packages for CUDA, and uses the system's")
    others = f", and {len(problems) - 1} more of {len(requirements)} packages" if len(problems) > 1 else ""
    summary = f"{problems[0]}{others}"
    install = cuda_cure(f"run pip install 'tensorflow[and-cuda]=={installed[name]}'", machine.processor)
    if tensorflow.gpus:
        cause = "TensorFlow finds its GPUs, but XLA cannot compile without ptxas and libdevice"
        return warned(summary, cause, f"{install}, or train with --xla off")
    return failed(summary, "TensorFlow uses no GPU unless it finds all of its CUDA libraries", install)


def without_gpu(machine: Machine) -> CheckFinding:
    """The finding of a check that asks NVML about GPUs, where NVML lists none."""
    driver = machine.driver()
    if driver.timed_out:
        return warned("unknown", driver.problem, "see nvidia.driver")
    if machine.in_wsl and check_wsl(machine).verdict is not CheckResult.PASS:
        return skipped("not checked: see nvidia.wsl")
    if machine.is_jetson or _is_seen(machine):
        return skipped("not checked: needs NVML")
    if machine.pci_gpus or (driver.problem and driver.problem not in NVML_PROBLEMS):
        return skipped("not checked: see nvidia.driver")
    return skipped(NOT_NEEDED)


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
        return skipped("not checked: TensorFlow is not installed")
    if not gpus and not _is_seen(machine):
        return _unseen_without_nvml(machine)
    tensorflow = machine.tensorflow()
    if (newer := _newer_than_build(machine)) is not None:
        return newer
    found = f"TensorFlow finds {_count(len(tensorflow.gpus))}"
    if not gpus:
        return passed(f"{found}; for utilization {'run tegrastats' if machine.is_jetson else 'see nvidia.driver'}")
    if len(tensorflow.gpus) > len(gpus):
        cause = "training uses them all, but utilization, memory and power are shown only of those that NVML lists"
        fix = "start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; some virtual GPUs have no NVML"
        return warned(f"{found}, NVML (the driver's monitoring library) {len(gpus)}", cause, fix)
    if len(tensorflow.gpus) == len(gpus):
        return passed(f"{found}, as the driver does")
    if not tensorflow.gpus and (tensorflow.problem or tensorflow.timed_out):
        return warned("unknown", "TensorFlow cannot be imported", "see tensorflow.import")
    return diagnose_unseen_gpu(machine, f"TensorFlow finds {len(tensorflow.gpus)} of {_count(len(gpus))}")


def _unseen_without_nvml(machine: Machine) -> CheckFinding:
    """The finding where neither NVML nor TensorFlow lists a GPU."""
    is_passed = machine.in_container and machine.pci_gpus and (machine.root / "dev/nvidiactl").exists()
    if not machine.is_jetson and not is_passed:
        return without_gpu(machine)
    if machine.tensorflow().problem or machine.tensorflow().timed_out:
        return warned("unknown", "TensorFlow cannot be imported", "see tensorflow.import")
    what = "GPU of this Jetson" if machine.is_jetson else "host's GPU, which this container has"
    return diagnose_unseen_gpu(machine, f"TensorFlow does not find the {what}")


def _newer_than_build(machine: Machine) -> CheckFinding | None:
    """The finding if a GPU is of a newer generation than this build of TensorFlow has code for."""
    tensorflow = machine.tensorflow()
    pairs = zip(tensorflow.gpus, tensorflow.capabilities, strict=False)
    newer = [
        f"{name} (compute capability {capability})"
        for name, capability in pairs
        if is_newer(capability, tensorflow.built)
    ]
    if not newer:
        return None
    newest = newest_major(tensorflow.built)
    summary = f"too new for tensorflow {tensorflow.version}: {', '.join(newer)}"
    cause = f"this TensorFlow has code for GPUs up to compute capability {newest}.x: the driver compiles it for yours, "
    cause += "which may take half an hour at the first steps, and XLA aborts the process"
    return warned(
        summary, cause, f"use a newer TensorFlow that has code for it, or {CONTAINER}; never train with --xla on"
    )


def _count(number: int) -> str:
    return numbers.counted(number, "GPU")


def index_of(gpu: str) -> str:
    """The driver's number of a GPU, which ``nvidia-smi`` shows, too."""
    return gpu.partition(":")[2]


def check_gpu_memory(machine: Machine) -> CheckFinding:
    """Check the free memory of the GPUs, and whether TensorFlow may allocate memory as needed."""
    driver = machine.driver()
    if not driver.gpus and not _is_seen(machine):
        return without_gpu(machine)
    growth = machine.environment.get("TF_FORCE_GPU_ALLOW_GROWTH")
    if growth == "false":
        cause = "TF_FORCE_GPU_ALLOW_GROWTH=false overrides the plan: TensorFlow allocates all of a GPU's memory"
        return warned("memory growth is off", cause, "unset TF_FORCE_GPU_ALLOW_GROWTH")
    if growth not in (None, "true"):
        cause = "TensorFlow only accepts true and false; the plan's setting is used"
        return warned(f"TF_FORCE_GPU_ALLOW_GROWTH={growth}", cause, "unset TF_FORCE_GPU_ALLOW_GROWTH")
    if not driver.gpus:
        return without_gpu(machine)
    full = [f"{name} {percent(share, 0)}" for name, share in driver.memory_shares if share >= FULL_MEMORY_SHARE]
    if full:
        cause = "other processes use nearly all of the memory"
        return warned(f"in use: {', '.join(full)}", cause, "stop them (nvidia-smi lists them), or choose other GPUs")
    if not driver.memory_shares:
        return passed("memory growth is on; the driver does not tell what memory is free")
    unknown = len(driver.gpus) - len(driver.memory_shares)
    whose = (
        f"free memory on {_count(len(driver.memory_shares))}, {unknown} not read"
        if unknown
        else "every GPU has free memory"
    )
    return passed(f"memory growth is on; {whose}")
