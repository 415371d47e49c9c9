"""Why TensorFlow does not see a GPU that the driver sees: the usual causes, most telling first."""

import re

from accel_engine.devices.cuda_visible_devices import visible_gpus
from accel_engine.doctor.check import Finding, failed, warned
from accel_engine.doctor.machine import Machine
from accel_engine.doctor.tensorflow_checks import installed
from accel_engine.installation import DISTRIBUTIONS

_AGAIN = "restart the machine, so that the kernel loads the driver's new version"

LOGGED = (
    (
        r"minimum required Cuda capability is (\d+\.\d+)",
        "the GPU is older than this TensorFlow supports (compute capability {0} at least)",
        "use an older TensorFlow or a newer GPU; train on the CPU until then",
    ),
    (
        r"does not match DSO version|SYSTEM_DRIVER_MISMATCH|[Vv]ersion mismatch",
        "the driver's kernel module and its libraries are of different versions",
        _AGAIN,
    ),
    (
        r"driver version is insufficient|INSUFFICIENT_DRIVER|COMPAT_NOT_SUPPORTED|forward compatibility",
        "the driver is too old for the CUDA that TensorFlow is built for",
        "install a newer driver, and restart",
    ),
    (
        r"SYSTEM_NOT_READY",
        "the GPUs are joined by an NVSwitch, and its service does not run",
        "sudo systemctl start nvidia-fabricmanager",
    ),
    (
        r"CUDA_ERROR_OUT_OF_MEMORY",
        "other processes have all of its memory",
        "end them: nvidia-smi lists them",
    ),
    (
        r"DEVICE_UNAVAILABLE|busy or unavailable|CUDA_ERROR_DEVICES_UNAVAILABLE",
        "another process has the GPU for itself (compute mode exclusive)",
        "end that process, or: sudo nvidia-smi --compute-mode 0",
    ),
    (
        r"Could not load dynamic library '([^']+)'",
        "the CUDA library {0} cannot be loaded, and TensorFlow needs all of them",
        "pip install 'tensorflow[and-cuda]'; unset LD_LIBRARY_PATH if it names another CUDA",
    ),
    (
        r"Cannot dlopen (some|all)",
        "a CUDA library cannot be loaded, and TensorFlow needs all of them",
        "pip install 'tensorflow[and-cuda]'; unset LD_LIBRARY_PATH if it names another CUDA",
    ),
    (
        r"CUDA_ERROR_UNKNOWN|UNKNOWN ERROR \(999\)",
        "the driver's module for CUDA (nvidia_uvm) is not loaded, or did not survive that the machine slept",
        "sudo nvidia-modprobe -u -c=0; if that is not enough, restart the machine",
    ),
    (
        r"UNKNOWN ERROR \(303\)|Could not find cuda drivers|libcuda\.so",
        "the driver's own CUDA library, libcuda.so.1, is not found",
        "install the whole driver; in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility for it",
    ),
    (
        r"CUDA_ERROR_NO_DEVICE|no CUDA-capable device",
        "CUDA was shown no GPU: its files in /dev are missing or closed to you",
        "look at ls -l /dev/nvidia*; start a container with --gpus all",
    ),
)
"""What TensorFlow's native code says, as a pattern; what it means; what to do."""


def diagnose_unseen_gpu(machine: Machine, found: str) -> Finding:
    """Name the cause.

    Args:
        machine: One whose TensorFlow can be imported, but sees fewer GPUs than the driver.
        found: How many it sees.
    """
    return (
        _build(machine, found)
        or _hidden(machine, found)
        or _logged(machine, found)
        or failed(
            found,
            "TensorFlow does not say why",
            "python -c 'import tensorflow as tf; tf.config.list_physical_devices()' shows its log",
        )
    )


def _build(machine: Machine, found: str) -> Finding | None:
    if machine.sight().cuda:
        return None
    name = next(iter(installed(machine)), "")
    use = {"cpu": "is the build for CPUs", "tpu": "is the build for TPUs"}.get(DISTRIBUTIONS.get(name, ""))
    why = f"{name} {use or 'was built without CUDA for this platform'}"
    return failed(found, why, "in a fresh virtual environment: pip install 'accel-tui[cuda]' (on Linux)")


def _hidden(machine: Machine, found: str) -> Finding | None:
    shown = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if shown is None or len(machine.sight().gpus) != len(visible_gpus(shown, machine.driver().gpus)):
        return None
    what = "hides all GPUs" if not machine.sight().gpus else "hides the others"
    valid = re.fullmatch(r"\s*-?\d+(\s*,\s*-?\d+)*\s*|", shown)
    note = "" if valid or not shown else "; CUDA stops at the first that it does not know"
    why = f"CUDA_VISIBLE_DEVICES={shown!r} {what}{note}"
    return warned(found, why, "unset CUDA_VISIBLE_DEVICES, unless that is meant; a scheduler may have set it")


def _logged(machine: Machine, found: str) -> Finding | None:
    log = machine.sight().log
    for pattern, why, advice in LOGGED:
        if match := re.search(pattern, log):
            return failed(found, why.format(*match.groups()), advice)
    return None
