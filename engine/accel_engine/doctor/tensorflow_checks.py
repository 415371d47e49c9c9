"""Which TensorFlow is installed, and whether it can be imported."""

import re
from functools import partial
from pathlib import Path

from accel_engine.doctor.check import Check, Finding, failed, passed, warned
from accel_engine.doctor.machine import Machine, installed_version
from accel_engine.doctor.tf_probe import PATIENCE, TensorFlowDevices, is_beside
from accel_engine.doctor.versions import numbers
from accel_engine.installation import DISTRIBUTIONS, INSTALL_COMMANDS

OTHERS = (
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
"""More distributions that bring a package ``tensorflow`` and so overwrite it."""

OLDEST, NEWEST = (2, 19), (2, 21)
"""The versions of TensorFlow that the extras allow, first and last."""

LAST_WORD = 5.0
"""Seconds that a check waits for TensorFlow's process beyond the time that this one has."""

_PARTS_MISSING = re.compile(r"No module named 'tensorflow\b|module 'tensorflow\b.* has no attribute")

_AFRESH = "make a fresh virtual environment and install one of them there"

_SIGNALS = {
    "SIGABRT": "native code found a contradiction and gave up",
    "SIGILL": "it was built for instructions that this processor has not",
    "SIGSEGV": "native code read memory that is not its own; most often, libraries that do not fit each other",
    "SIGBUS": "a file that was mapped into memory was cut short; most often, a full disk or /dev/shm",
    "SIGKILL": "somebody killed it; most often the system, because memory ran out",
}


def checks(machine: Machine) -> tuple[Check, ...]:
    """The checks of this subject."""
    return (
        Check("tensorflow.packages", partial(packages, machine)),
        Check("tensorflow.import", partial(importing, machine), PATIENCE + LAST_WORD),
    )


def installed(machine: Machine | None = None) -> dict[str, str]:
    """The distributions that bring a package ``tensorflow``, and their versions; here when no machine is given."""
    version_of = machine.version if machine else installed_version
    names = (*DISTRIBUTIONS, *OTHERS)
    return {name: version for name in names if (version := version_of(name))}


def packages(machine: Machine) -> Finding:
    """Whether just one TensorFlow is installed, and one that fits."""
    here = installed(machine)
    found = ", ".join(f"{name} {version}" for name, version in here.items())
    if not here:
        return failed("none is installed", "without TensorFlow nothing can be trained", INSTALL_COMMANDS)
    if len(here) > 1:
        why = "each brings the same folder tensorflow/, so that the files are a mixture of them"
        return failed(found, why, f"{_AFRESH}; to uninstall one would break the other")
    name, version = next(iter(here.items()))
    if name not in DISTRIBUTIONS:
        why = "engines are started for tensorflow, tensorflow-cpu and tensorflow-tpu, and this is none of them"
        return failed(found, why, f"in a fresh virtual environment: {INSTALL_COMMANDS}")
    keras = machine.version("keras")
    if numbers(keras) < (3,):
        found += f", keras {keras}" if keras else ", no keras"
        return failed(found, "this TensorFlow needs Keras 3", "pip install 'keras>=3'")
    found += f", keras {keras}"
    if not OLDEST <= numbers(version)[:2] <= NEWEST:
        span = " to ".join(".".join(map(str, end)) for end in (OLDEST, NEWEST))
        return warned(found, f"accel-tui is tested with TensorFlow {span}", f"in a fresh one: {INSTALL_COMMANDS}")
    return passed(found)


def importing(machine: Machine) -> Finding:
    """Whether it can be imported, in a process of its own."""
    if not installed(machine):
        return warned("not tried", "no TensorFlow is installed", "see tensorflow.packages")
    sight = machine.sight()
    if sight.late:
        return _late(machine, sight)
    if sight.signal:
        return _ended(machine, sight)
    if not sight.version and is_beside(sight.file, Path.cwd()):
        return failed(
            f"tensorflow is {sight.file}",
            "Python finds this file or folder of yours before the true TensorFlow",
            "give it another name, or start from another directory",
        )
    if _PARTS_MISSING.search(sight.problem):
        return failed(
            f"{sight.file or 'its folder'} is not whole",
            "files are missing, as when one of two TensorFlows was uninstalled",
            f"in a fresh virtual environment: {INSTALL_COMMANDS}",
        )
    if sight.problem:
        return _raised(sight)
    build = f"built for CUDA {sight.cuda}" if sight.cuda else "built without CUDA"
    return passed(f"{sight.version} in {sight.seconds:.1f} s, {build}; Keras {sight.keras}")


def _late(machine: Machine, sight: TensorFlowDevices) -> Finding:
    where = "looking for devices" if sight.version else "importing it"
    if machine.version("tensorflow-tpu"):
        return failed(
            f"still {where} after {PATIENCE:g} s",
            "outside Google Cloud tensorflow-tpu waits for a service that is only there",
            "there, set TPU_SKIP_MDS_QUERY=1; where there is no TPU, install accel-tui[cpu] afresh",
        )
    return failed(
        f"still {where} after {PATIENCE:g} s",
        "a driver does not answer, or the disk with the packages is very slow",
        "try again now that the files are cached; keep the virtual environment on a local disk",
    )


def _ended(machine: Machine, sight: TensorFlowDevices) -> Finding:
    where = "looking for devices" if sight.version else "importing it"
    why = f"{_SIGNALS.get(sight.signal, 'native code was ended')}: {_cut(sight.problem)}"
    advice = f"in a fresh virtual environment: {INSTALL_COMMANDS}"
    if sight.signal == "SIGILL" and not _has_avx(machine):
        why = "TensorFlow's packages are built for AVX, which this processor has not, or its emulator hides"
        advice = "use a machine with AVX; in a virtual machine, choose the host's own processor model"
    elif sight.signal == "SIGKILL":
        advice = "free memory, or raise the limit of the container or job; TensorFlow alone takes about 1 GiB"
    elif machine.version("tensorflow-tpu"):
        advice = "see tpu.library: a libtpu that does not fit TensorFlow ends it in this way"
    return failed(f"{sight.signal} while {where}", why, advice)


def _raised(sight: TensorFlowDevices) -> Finding:
    advice = f"in a fresh virtual environment: {INSTALL_COMMANDS}"
    if "GLIBC" in sight.problem:
        advice = "this system's C library is older than TensorFlow's packages need: use a newer system or container"
    elif match := re.search(r"No module named '([\w.]+)'", sight.problem):
        advice = f"pip install {match[1].partition('.')[0]}, or install accel-tui afresh"
    elif "protobuf" in sight.problem.lower():
        advice = "another package brought a protobuf that does not fit: install accel-tui in an environment of its own"
    elif "numpy" in sight.problem.lower():
        advice = "another package brought a NumPy that does not fit: install accel-tui in an environment of its own"
    return failed("cannot be imported", _cut(sight.problem), advice)


def _cut(text: str, length: int = 200) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _has_avx(machine: Machine) -> bool:
    """Whether the processor has AVX; taken for granted where the kernel does not say."""
    try:
        flags = (machine.root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return True
    return "flags" not in flags or " avx " in flags.replace("\n", " \n")
