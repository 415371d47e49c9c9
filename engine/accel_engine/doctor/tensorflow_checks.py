"""Checks which TensorFlow is installed, and whether it can be imported."""

import re
from pathlib import Path

from accel_engine.devices.installation import DISTRIBUTIONS, INSTALL_COMMANDS
from accel_engine.doctor.check import CheckFinding, failed, passed, warned
from accel_engine.doctor.machine import Machine, installed_version, parse_version
from accel_engine.doctor.tf_probe import PROBE_TIMEOUT, TensorFlowDevices, shadows

UNSUPPORTED_DISTRIBUTIONS = (
    "tf-nightly",
    "tf-nightly-cpu",
    "tensorflow-gpu",
    "tensorflow-intel",
    "tensorflow-macos",
    "tensorflow-rocm",
    "tensorflow-cpu-aws",
    "tensorflow-aarch64",
    "intel-tensorflow",
    "nvidia-tensorflow",
)
"""Other distributions with a package ``tensorflow``, which overwrite each other."""

OLDEST, NEWEST = (2, 19), (2, 21)
"""The range of supported TensorFlow versions."""

_PARTS_MISSING = re.compile(r"No module named 'tensorflow\b|module 'tensorflow\b.* has no attribute")

_NEW_ENVIRONMENT = "create a new virtual environment and install only one of them"

_SIGNALS = {
    "SIGABRT": "native code aborted",
    "SIGILL": "it was built for instructions that this processor does not support",
    "SIGSEGV": "invalid memory access in native code, usually due to incompatible libraries",
    "SIGBUS": "a memory-mapped file was truncated, usually by a full disk or /dev/shm",
    "SIGKILL": "it was killed, usually by the system because memory ran out",
}


def installed_packages(machine: Machine | None = None) -> dict[str, str]:
    """The installed distributions with a package ``tensorflow``, and their versions; of this machine by default."""
    version_of = machine.version if machine else installed_version
    names = (*DISTRIBUTIONS, *UNSUPPORTED_DISTRIBUTIONS)
    return {name: version for name in names if (version := version_of(name))}


def check_packages(machine: Machine) -> CheckFinding:
    """Check whether exactly one supported TensorFlow is installed."""
    installed = installed_packages(machine)
    summary = ", ".join(f"{name} {version}" for name, version in installed.items())
    if not installed:
        return failed("not installed", "training needs TensorFlow", INSTALL_COMMANDS)
    if len(installed) > 1:
        cause = "they install to the same folder tensorflow/, so their files are mixed"
        return failed(summary, cause, f"{_NEW_ENVIRONMENT}; uninstalling one would break the other")
    name, version = next(iter(installed.items()))
    if name not in DISTRIBUTIONS:
        cause = "accel-tui supports tensorflow, tensorflow-cpu and tensorflow-tpu"
        return failed(summary, cause, f"in a new virtual environment: {INSTALL_COMMANDS}")
    keras = machine.version("keras")
    if parse_version(keras).major < 3:
        summary += f", keras {keras}" if keras else ", no keras"
        return failed(summary, "this TensorFlow needs Keras 3", "run pip install 'keras>=3'")
    summary += f", keras {keras}"
    if not OLDEST <= parse_version(version).release[:2] <= NEWEST:
        span = " to ".join(".".join(map(str, end)) for end in (OLDEST, NEWEST))
        cause = f"accel-tui is tested with TensorFlow {span}"
        return warned(summary, cause, f"in a new virtual environment: {INSTALL_COMMANDS}")
    return passed(summary)


def check_import(machine: Machine) -> CheckFinding:
    """Check whether TensorFlow can be imported, in a separate process."""
    if not installed_packages(machine):
        return warned("skipped", "TensorFlow is not installed", "see tensorflow.packages")
    tensorflow = machine.tensorflow()
    if tensorflow.timed_out:
        return _timed_out(machine, tensorflow)
    if tensorflow.signal:
        return _killed_by_signal(machine, tensorflow)
    if not tensorflow.version and shadows(tensorflow.file, Path.cwd()):
        return failed(
            f"tensorflow is {tensorflow.file}",
            "your file or folder shadows the TensorFlow package",
            "rename it, or start from another directory",
        )
    if _PARTS_MISSING.search(tensorflow.problem):
        return failed(
            f"{tensorflow.file or 'its folder'} is incomplete",
            "files are missing, e.g. because one of two TensorFlow packages was uninstalled",
            f"in a new virtual environment: {INSTALL_COMMANDS}",
        )
    if tensorflow.problem:
        return _import_failed(tensorflow)
    build = f"built for CUDA {tensorflow.cuda}" if tensorflow.cuda else "built without CUDA"
    return passed(f"{tensorflow.version} in {tensorflow.seconds:.1f} s, {build}; Keras {tensorflow.keras}")


def _timed_out(machine: Machine, tensorflow: TensorFlowDevices) -> CheckFinding:
    where = "listing devices" if tensorflow.version else "importing"
    if machine.version("tensorflow-tpu"):
        return failed(
            f"still {where} after {PROBE_TIMEOUT:g} s",
            "tensorflow-tpu waits for a service that only exists in Google Cloud",
            "set TPU_SKIP_MDS_QUERY=1; without a TPU, install accel-tui[cpu] in a new virtual environment",
        )
    return failed(
        f"still {where} after {PROBE_TIMEOUT:g} s",
        "a driver does not respond, or the disk with the packages is very slow",
        "try again now that the files are cached; put the virtual environment on a local disk",
    )


def _killed_by_signal(machine: Machine, tensorflow: TensorFlowDevices) -> CheckFinding:
    where = "listing devices" if tensorflow.version else "importing"
    cause = f"{_SIGNALS.get(tensorflow.signal, 'native code was terminated')}: {_truncated(tensorflow.problem)}"
    fix = f"in a new virtual environment: {INSTALL_COMMANDS}"
    if tensorflow.signal == "SIGILL" and not _has_avx(machine):
        cause = "TensorFlow's packages need AVX, which this processor does not have, or its emulator hides"
        fix = "use a machine with AVX; in a virtual machine, choose the host's processor model"
    elif tensorflow.signal == "SIGKILL":
        fix = "free memory, or raise the limit of the container or job; TensorFlow alone needs about 1 GiB"
    elif machine.version("tensorflow-tpu"):
        fix = "see tpu.library: an incompatible libtpu has this effect"
    return failed(f"{tensorflow.signal} while {where}", cause, fix)


def _import_failed(tensorflow: TensorFlowDevices) -> CheckFinding:
    fix = f"in a new virtual environment: {INSTALL_COMMANDS}"
    if "GLIBC" in tensorflow.problem:
        fix = "use a newer system or container: this system's C library is too old for TensorFlow's packages"
    elif match := re.search(r"No module named '([\w.]+)'", tensorflow.problem):
        fix = f"run pip install {match[1].partition('.')[0]}, or reinstall accel-tui"
    elif "protobuf" in tensorflow.problem.lower():
        fix = "install accel-tui in its own virtual environment: another package installed an incompatible protobuf"
    elif "numpy" in tensorflow.problem.lower():
        fix = "install accel-tui in its own virtual environment: another package installed an incompatible NumPy"
    return failed("cannot be imported", _truncated(tensorflow.problem), fix)


def _truncated(text: str, length: int = 200) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _has_avx(machine: Machine) -> bool:
    """Whether the processor has AVX; assumed if the kernel does not tell."""
    try:
        flags = (machine.root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return True
    return "flags" not in flags or " avx " in flags.replace("\n", " \n")
