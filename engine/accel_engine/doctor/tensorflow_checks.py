"""Checks which TensorFlow is installed, and whether it can be imported."""

import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from accel_engine.arrow import CURE
from accel_engine.devices.installation import CONTAINER, DISTRIBUTIONS, NEWEST, OLDEST, cuda_cure
from accel_engine.devices.tpu_chips import find_chips
from accel_engine.doctor.check import CheckFinding, CheckResult, failed, passed, skipped, warned
from accel_engine.doctor.check_inputs import Machine, installed_version, parse_version
from accel_engine.doctor.python_checks import check_python
from accel_engine.doctor.tf_probe import PROBE_TIMEOUT, XLA_VARIABLES, TensorFlowDevices, shadows
from accel_engine.measure.tried_gpus import note_tried
from accel_engine.text import truncated

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

OLDEST_KERAS = Version("3.11.3")
"""The oldest supported Keras."""

NO_PKG_RESOURCES = 82
"""The major version of setuptools from which there is no ``pkg_resources``."""

LAST_WITH_PKG_RESOURCES = Version("2.20.0")
"""The last TensorBoard that imports it."""

_LISTED = 3
"""Number of packages that a summary names."""

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


def _install_command(machine: Machine) -> str:
    """The command that installs the TensorFlow for this machine's accelerators."""
    extra = "cpu"
    if find_chips(machine.root):
        extra = "tpu"
    elif machine.python.system == "Linux x86_64" and (machine.pci_gpus or machine.in_wsl):
        extra = "cuda"
    return f"pip install 'accel-tui[{extra}]'"


def check_packages(machine: Machine) -> CheckFinding:
    """Check whether exactly one supported TensorFlow is installed."""
    installed = installed_packages(machine)
    summary = ", ".join(f"{name} {version}" for name, version in installed.items())
    if not installed:
        fix = f"run {_install_command(machine)}"
        if check_python(machine.python).verdict is CheckResult.FAIL:
            fix = f"see python; then {fix}"
        return failed("not installed", "training needs TensorFlow", fix)
    if len(installed) > 1:
        cause = "they install to the same folder tensorflow/, so their files are mixed"
        return failed(summary, cause, f"{_NEW_ENVIRONMENT}; uninstalling one would break the other")
    name, version = next(iter(installed.items()))
    if name not in DISTRIBUTIONS:
        cause = "accel-tui supports tensorflow, tensorflow-cpu and tensorflow-tpu"
        return failed(summary, cause, f"in a new virtual environment: {_install_command(machine)}")
    keras = machine.version("keras")
    if parse_version(keras).major < 3:
        summary += f", keras {keras}" if keras else ", no keras"
        return failed(summary, "this TensorFlow needs Keras 3", "run pip install 'keras>=3'")
    summary += f", keras {keras}"
    if parse_version(keras) < OLDEST_KERAS:
        cause = f"accel-tui needs Keras {OLDEST_KERAS} or newer: older ones lose weights and settings of saved models"
        return failed(summary, cause, f"run pip install 'keras>={OLDEST_KERAS},<4'")
    if not OLDEST <= parse_version(version).release[:2] <= NEWEST:
        span = " to ".join(".".join(map(str, end)) for end in (OLDEST, NEWEST))
        cause = f"accel-tui is tested with TensorFlow {span}"
        return warned(summary, cause, f"in a new virtual environment: {_install_command(machine)}")
    return passed(summary)


def requirement_problem(machine: Machine, requirement: Requirement) -> str:
    """Why the installed version of a required package does not fit; empty if it does."""
    version = machine.version(requirement.name)
    if not version:
        return f"{requirement.name} is missing"
    fits = requirement.specifier.contains(parse_version(version), prereleases=True)
    return "" if fits else f"{requirement.name} is {version}, not {requirement.specifier}"


def check_requirements(machine: Machine) -> CheckFinding:
    """Check whether another package has replaced what TensorFlow needs, such as protobuf, by other versions."""
    installed = installed_packages(machine)
    if not installed:
        return skipped("not checked: TensorFlow is not installed")
    name = next(iter(installed))
    needed = [each for each in map(Requirement, machine.requirements(name)) if _is_needed(each)]
    if problems := [problem for each in needed if (problem := requirement_problem(machine, each))]:
        cause = f"{name} {installed[name]} needs other versions than another package has installed"
        return warned("; ".join(problems[:_LISTED]), cause, "install accel-tui in its own virtual environment")
    if _lacks_pkg_resources(machine):
        found = machine.version("setuptools") or "missing"
        cause = f"TensorBoard imports pkg_resources, which setuptools had before {NO_PKG_RESOURCES} only"
        return warned(f"setuptools is {found}", cause, f"run pip install 'setuptools<{NO_PKG_RESOURCES}'")
    return passed(f"{len(needed)} packages, as required by {name} {installed[name]}")


def _lacks_pkg_resources(machine: Machine) -> bool:
    """Whether a TensorBoard is installed that needs ``pkg_resources``, without them."""
    board = machine.version("tensorboard")
    return (
        bool(board)
        and parse_version(board) <= LAST_WITH_PKG_RESOURCES
        and not 0 < parse_version(machine.version("setuptools")).major < NO_PKG_RESOURCES
    )


def _is_needed(requirement: Requirement) -> bool:
    """Whether a requirement holds on this platform, without an extra."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


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
            "TensorFlow is incomplete",
            f"files are missing in {tensorflow.file or 'its folder'}, e.g. because one of two TensorFlow packages was "
            "uninstalled",
            f"in a new virtual environment: {_install_command(machine)}",
        )
    if tensorflow.problem:
        return _import_failed(machine, tensorflow)
    build = f"built for CUDA {tensorflow.cuda}" if tensorflow.cuda else "built without CUDA"
    return passed(f"{tensorflow.version} in {tensorflow.seconds:.1f} s, {build}; Keras {tensorflow.keras}")


def check_tables(machine: Machine) -> CheckFinding:
    """Check whether an engine can load PyArrow, which reads tables; on macOS, the two may crash or block it."""
    if not machine.version("pyarrow"):
        return warned("no pyarrow", "tables, CSV and Parquet files cannot be read", "run pip install pyarrow")
    if not machine.is_mac:
        return passed(f"pyarrow {machine.version('pyarrow')}")
    if problem := machine.arrow():
        cause = f"{problem}: training from tables, CSV and Parquet files fails"
        return failed(f"pyarrow {machine.version('pyarrow')} beside TensorFlow", cause, f"run {CURE}")
    return passed(f"pyarrow {machine.version('pyarrow')}, which loads beside TensorFlow")


def check_flags(machine: Machine) -> CheckFinding:
    """Check whether XLA accepts the flags that the user has set: an unknown one ends the process that uses it."""
    names = " and ".join(name for name in XLA_VARIABLES if machine.environment.get(name, "").strip())
    if not names:
        return skipped("not needed: no flags for XLA are set")
    if not installed_packages(machine):
        return skipped("not checked: TensorFlow is not installed")
    problem = machine.xla_flags()
    if problem is None:
        return skipped(f"{names} not checked: XLA could not be tried")
    if not problem:
        return passed(f"XLA accepts {names}")
    if "TF_XLA_FLAGS" in problem:
        return failed(problem, "TensorFlow ends every process with it", "correct TF_XLA_FLAGS, or unset it")
    return warned(problem, "XLA ends every process that uses it", f"{_CORRECT}; until then, train with --xla off")


_CORRECT = "correct XLA_FLAGS, or unset it"


def check_computing(machine: Machine) -> CheckFinding:
    """Check whether every device multiplies, convolves, and runs what XLA has compiled, in a separate process."""
    if not installed_packages(machine):
        return warned("skipped", "TensorFlow is not installed", "see tensorflow.packages")
    tensorflow = machine.computing()
    if not tensorflow.computed and not tensorflow.trying:
        return warned("skipped", "TensorFlow finds no devices", "see tensorflow.import")
    if not tensorflow.trying:
        note_tried(tensorflow.gpus)
        return passed("; ".join(tensorflow.computed))
    if tensorflow.timed_out:
        how, cause = f"not done after {PROBE_TIMEOUT:g} s", "the device hangs, or its code is compiled anew for it"
    elif tensorflow.signal:
        how, cause = f"ended by {tensorflow.signal}", truncated(tensorflow.problem, 200)
    else:
        how, cause = "failed", truncated(tensorflow.problem, 200)
    fix = next((text for pattern, text in _COMPUTING_FIXES if re.search(pattern, tensorflow.log)), "see nvidia.seen")
    if _CUDA_PACKAGE in fix:
        fix = cuda_cure(fix, machine.processor)
    if "XLA" in tensorflow.trying:
        return warned(f"{tensorflow.trying}: {how}", cause, f"{fix}; until then, train with --xla off")
    return failed(f"{tensorflow.trying}: {how}", cause, fix)


_CUDA_PACKAGE = "pip install 'tensorflow[and-cuda]'"

_COMPUTING_FIXES = (
    (
        r"PTX version|sm_\d+ is not|no kernel image|NO_BINARY_FOR_GPU|[Uu]nsupported.*PTX",
        f"the GPU is newer than this TensorFlow: use a newer TensorFlow, or {CONTAINER}",
    ),
    (r"Unknown flags? in XLA_FLAGS", _CORRECT),
    (r"libdevice|ptxas", f"install CUDA's compiler: {_CUDA_PACKAGE}"),
    (
        r"CUDNN_STATUS|cudnn|CuDNN",
        f"install the cuDNN that TensorFlow was built with: {_CUDA_PACKAGE}",
    ),
    (r"OUT_OF_MEMORY|out of memory", "end other programs on the GPU (nvidia-smi lists them)"),
)
"""Patterns of the log of a computation that failed, and the fix; most specific first."""


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
    cause = f"{_SIGNALS.get(tensorflow.signal, 'native code was terminated')}: {truncated(tensorflow.problem, 200)}"
    fix = f"in a new virtual environment: {_install_command(machine)}"
    if tensorflow.signal == "SIGILL" and not _has_avx(machine):
        cause = "TensorFlow's packages need AVX, which this processor does not have, or its emulator hides"
        fix = "use a machine with AVX; in a virtual machine, choose the host's processor model"
    elif tensorflow.signal == "SIGKILL":
        fix = "free memory, or raise the limit of the container or job; TensorFlow alone needs about 1 GiB"
    elif machine.version("tensorflow-tpu"):
        fix = "see tpu.library: an incompatible libtpu has this effect"
    return failed(f"{tensorflow.signal} while {where}", cause, fix)


def _import_failed(machine: Machine, tensorflow: TensorFlowDevices) -> CheckFinding:
    fix = f"in a new virtual environment: {_install_command(machine)}"
    if "GLIBC" in tensorflow.problem:
        fix = "use a newer system or container: this system's C library is too old for TensorFlow's packages"
    elif match := re.search(r"No module named '([\w.]+)'", tensorflow.problem):
        fix = f"run pip install {match[1].partition('.')[0]}, or reinstall accel-tui"
    elif "protobuf" in tensorflow.problem.lower():
        fix = "install accel-tui in its own virtual environment: another package installed an incompatible protobuf"
    elif "numpy" in tensorflow.problem.lower():
        fix = "install accel-tui in its own virtual environment: another package installed an incompatible NumPy"
    return failed("cannot be imported", truncated(tensorflow.problem, 200), fix)


def _has_avx(machine: Machine) -> bool:
    """Whether the processor has AVX; assumed if the kernel does not tell."""
    try:
        flags = (machine.root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return True
    return "flags" not in flags or " avx " in flags.replace("\n", " \n")
