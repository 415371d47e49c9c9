"""Diagnoses why TensorFlow does not find a GPU that the driver finds."""

import re

from accel_engine.devices.cuda_visible_devices import VISIBLE, visible_gpus
from accel_engine.devices.installation import ARM, CONTAINER, DISTRIBUTIONS, cuda_cure
from accel_engine.devices.nvidia_queries import REASONS
from accel_engine.doctor.check import CheckFinding, failed, warned
from accel_engine.doctor.check_inputs import Machine
from accel_engine.doctor.tensorflow_checks import installed_packages

_RESTART = "restart the machine to load the driver's new version"

LOG_PATTERNS = (
    (
        r"minimum required Cuda capability is (\d+\.\d+)",
        "the GPU is too old for this TensorFlow, which needs compute capability {0} or higher",
        "use an older TensorFlow or a newer GPU, or train on the CPU",
    ),
    (
        r"does not match DSO version|SYSTEM_DRIVER_MISMATCH|[Vv]ersion mismatch",
        "the driver's kernel module and its libraries have different versions",
        _RESTART,
    ),
    (
        r"driver version is insufficient|INSUFFICIENT_DRIVER|COMPAT_NOT_SUPPORTED|forward compatibility",
        "the driver is too old for TensorFlow's CUDA version",
        "install a newer driver and restart",
    ),
    (
        r"SYSTEM_NOT_READY",
        "the GPUs are connected by an NVSwitch, whose service is not running",
        "run sudo systemctl start nvidia-fabricmanager",
    ),
    (
        r"CUDA_ERROR_OUT_OF_MEMORY",
        "other processes use all of the GPU's memory",
        "stop them (nvidia-smi lists them)",
    ),
    (
        r"DEVICE_UNAVAILABLE|busy or unavailable|CUDA_ERROR_DEVICES_UNAVAILABLE",
        "another process uses the GPU exclusively (compute mode)",
        "stop that process, or run sudo nvidia-smi --compute-mode 0",
    ),
    (
        r"Could not load dynamic library '([^']+)'",
        "TensorFlow cannot load the CUDA library {0}",
        "run pip install 'tensorflow[and-cuda]'; unset LD_LIBRARY_PATH if it contains another CUDA version",
    ),
    (
        r"Cannot dlopen (some|all)",
        "TensorFlow cannot load all CUDA libraries",
        "run pip install 'tensorflow[and-cuda]'; unset LD_LIBRARY_PATH if it contains another CUDA version",
    ),
    (
        r"CUDA_ERROR_UNKNOWN|UNKNOWN ERROR \(999\)",
        "the driver's kernel module for CUDA (nvidia_uvm) is not loaded, or failed after a suspend",
        "run sudo nvidia-modprobe -u -c=0; if that does not help, restart the machine",
    ),
    (
        r"UNKNOWN ERROR \(303\)|Could not find cuda drivers|libcuda\.so",
        "the driver's CUDA library, libcuda.so.1, is missing",
        "install the complete driver; in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    ),
    (
        r"CUDA_ERROR_NO_DEVICE|no CUDA-capable device",
        "CUDA cannot access a GPU: its files in /dev are missing, or you may not open them",
        "check ls -l /dev/nvidia*; start a container with --gpus all",
    ),
)
"""Pattern of a message of TensorFlow's native code, its cause, and the fix; most specific first."""


_FILES = ("dev/nvidia-uvm", "dev/nvidiactl")
"""Files that CUDA opens besides the GPUs' own."""


def missing_files(machine: Machine) -> list[str]:
    """The files of the driver that CUDA needs and that are not there; WSL2 has other ones."""
    return [] if machine.in_wsl else [f"/{name}" for name in _FILES if not (machine.root / name).exists()]


def diagnose_unseen_gpu(machine: Machine, summary: str) -> CheckFinding:
    """Find the cause.

    Args:
        machine: A machine whose TensorFlow can be imported, but finds fewer GPUs than the driver.
        summary: How many it finds.
    """
    return (
        _build(machine, summary)
        or _broken(machine, summary)
        or _hidden(machine, summary)
        or _logged(machine, summary)
        or failed(
            summary,
            "unknown: TensorFlow logs no reason",
            "run python -c 'import tensorflow as tf; tf.config.list_physical_devices()' and check its log",
        )
    )


def _build(machine: Machine, summary: str) -> CheckFinding | None:
    if machine.tensorflow().cuda:
        return None
    installed = installed_packages(machine)
    if len(installed) > 1:
        return failed(summary, f"the files of {' and '.join(installed)} are mixed", "see tensorflow.packages")
    name = next(iter(installed), "")
    build = {"cpu": "is the CPU build", "tpu": "is the TPU build"}.get(DISTRIBUTIONS.get(name, ""))
    cause = f"{name} {build or 'has no CUDA support on this platform'}"
    if machine.processor in ARM:
        cause = f"this {name} is built without CUDA: TensorFlow has no pip package with CUDA for {machine.processor}"
        return failed(summary, cause, f"use {CONTAINER}")
    return failed(summary, cause, "on Linux, run pip install 'accel-tui[cuda]' in a new virtual environment")


def _broken(machine: Machine, summary: str) -> CheckFinding | None:
    """The finding if other checks say why CUDA does not see the GPUs that are missing."""
    driver, seen = machine.driver(), len(machine.tensorflow().gpus)
    problems = [f"{gpu.id}: {gpu.problem}" for gpu in driver.gpus if gpu.problem]
    if problems and seen == len(driver.gpus) - len(problems):
        meanwhile = "; training can use the others meanwhile" if seen else ""
        refused = {gpu.problem for gpu in driver.gpus if gpu.problem} == {REASONS["NO_PERMISSION"]}
        finding = warned if seen and refused else failed  # they may belong to other jobs
        return finding(summary, "; ".join(problems), f"see nvidia.driver{meanwhile}")
    empty = [gpu.gpu for gpu in driver.settings if gpu.mig and not gpu.instances]
    if empty and seen == len(driver.gpus) - len(empty):
        return failed(summary, f"{', '.join(empty)}: MIG is on, without an instance", "see nvidia.settings")
    return None


def _hidden(machine: Machine, summary: str) -> CheckFinding | None:
    variable = machine.environment.get(VISIBLE)
    if variable is None:
        return None
    shown = visible_gpus({VISIBLE: variable}, machine.driver().gpus)  # their number is the same in every order
    if len(machine.tensorflow().gpus) != len(shown):
        return None
    effect = "hides all GPUs" if not machine.tensorflow().gpus else "hides the others"
    entries = [] if re.fullmatch(r"\s*-\d+\s*|", variable) else variable.split(",")
    note = "; CUDA stops at the first unknown entry" if len(entries) > len(shown) else ""
    instances = [uuid for gpu in machine.driver().gpus for uuid in gpu.uuids[1:]]
    there = f"; this machine has {', '.join(instances)}" if "MIG-" in variable and instances else ""
    cause = f"CUDA_VISIBLE_DEVICES={variable!r} {effect}{note}{there}"
    return warned(summary, cause, "unset CUDA_VISIBLE_DEVICES, unless you or a scheduler set it on purpose")


def _logged(machine: Machine, summary: str) -> CheckFinding | None:
    log = machine.tensorflow().log
    for pattern, cause, fix in LOG_PATTERNS:
        if match := re.search(pattern, log):
            if "nvidia_uvm" in cause and machine.in_container and (missing := missing_files(machine)):
                return failed(summary, f"{missing[0]} is missing, which CUDA opens", "see nvidia.files")
            if "and-cuda" in fix:
                fix = cuda_cure(fix, machine.processor)
            return failed(summary, cause.format(*match.groups()), fix)
    return None
