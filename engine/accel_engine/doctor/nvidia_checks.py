"""NVIDIA GPUs: whether the driver sees them, TensorFlow sees them, and what memory they have left."""

import shutil
from functools import partial
from pathlib import Path

from accel_engine.doctor.check import Check, Finding, failed, passed, warned
from accel_engine.doctor.driver import PATIENCE as DRIVER_PATIENCE
from accel_engine.doctor.driver import Driver
from accel_engine.doctor.gpu_diagnosis import diagnose_unseen_gpu
from accel_engine.doctor.machine import Machine
from accel_engine.doctor.tensorflow_checks import LAST_WORD, installed
from accel_engine.doctor.tf_probe import PATIENCE
from accel_engine.doctor.versions import fits

NVIDIA = "0x10de"
"""NVIDIA's PCI vendor id."""

DISPLAY = "0x03"
"""How the PCI class of GPUs begins."""

CUDA = 12
"""The CUDA, by its major version, that all TensorFlows are built for which the extras allow."""

OLDEST_DRIVER = "525.60.13"
"""The oldest Linux driver that runs CUDA 12; from NVIDIA's CUDA compatibility guide."""

FULL = 0.9
"""Share of a GPU's memory in use, from which on there is hardly room for a training."""

NONE_HERE = "not needed: no NVIDIA GPU here"


def checks(machine: Machine) -> tuple[Check, ...]:
    """The checks of this subject."""
    return (
        Check("nvidia.driver", partial(driver, machine), DRIVER_PATIENCE + LAST_WORD),
        Check("nvidia.libraries", partial(libraries, machine), PATIENCE + LAST_WORD),
        Check("nvidia.seen", partial(seen, machine), PATIENCE + LAST_WORD),
        Check("nvidia.memory", partial(memory, machine), DRIVER_PATIENCE + LAST_WORD),
    )


def driver(machine: Machine) -> Finding:
    """Whether the driver sees the GPUs that the machine has."""
    told = machine.driver()
    if told.gpus:
        return _working(told)
    on_bus = functions(machine.root)
    wrong = told.problem if told.problem not in ("no NVIDIA driver", "the NVIDIA driver sees no GPU") else ""
    if not on_bus and not wrong:
        return passed("no NVIDIA GPU here")
    names = ", ".join(function.name for function in on_bus)
    if wrong:
        why = f"no GPU can be used{f'; there is one at {names}' if names else ''}"
        return failed(wrong, why, "restart the machine; if that is not enough, install the driver again")
    found = f"{told.problem}; on the PCI bus: {names}"
    if machine.in_container:
        why = "this is a container; the GPU is the host's, and was not handed to it"
        return warned(found, why, "start it with --gpus all (Docker, with NVIDIA's container toolkit)")
    drivers = {driver for function in on_bus if (driver := _driver_of(function))}
    if "nouveau" in drivers:
        why = "the GPU is driven by nouveau, which knows no CUDA"
        return failed(found, why, "install NVIDIA's driver with the system's package manager, and restart")
    if "vfio-pci" in drivers:
        why = "the GPU is set aside for virtual machines (driver vfio-pci)"
        return warned(found, why, "give it back to the host's driver to train here")
    why = "the GPU has no driver that CUDA could use"
    return failed(found, why, "install NVIDIA's driver with the system's package manager, and restart")


def _working(told: Driver) -> Finding:
    names = sorted({gpu.name for gpu in told.gpus})
    cuda = f" (CUDA up to {told.cuda[0]}.{told.cuda[1]})" if told.cuda[0] else ""
    found = f"{told.version or 'unknown version'}{cuda}: {len(told.gpus)} x {', '.join(names)}"
    if 0 < told.cuda[0] < CUDA:
        why = f"TensorFlow is built for CUDA {CUDA}, and this driver is too old to run it"
        return failed(found, why, f"install driver {OLDEST_DRIVER} or newer, and restart")
    if lost := [gpu.id for gpu in told.gpus if not gpu.address and gpu.memory is None]:
        why = f"{', '.join(lost)} does not answer: it was lost from its bus"
        return failed(found, why, "restart the machine; if it is lost again, look at its power, heat and seat")
    return passed(found)


def functions(root: Path) -> list[Path]:
    """The NVIDIA GPUs on the PCI bus, whether or not they have a driver."""
    try:
        all_of_them = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return []
    return [function for function in all_of_them if _word(function / "vendor") == NVIDIA and _is_display(function)]


def _is_display(function: Path) -> bool:
    return _word(function / "class").startswith(DISPLAY)


def _driver_of(function: Path) -> str:
    try:
        return (function / "driver").readlink().name
    except OSError:
        return ""


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip().lower()
    except OSError:
        return ""


def libraries(machine: Machine) -> Finding:
    """Whether the CUDA libraries are there that this TensorFlow was built for."""
    if not machine.driver().gpus:
        return _without(machine.driver())
    here = installed(machine)
    name = "tensorflow"
    if name not in here:
        return passed(f"not used by {next(iter(here))}" if here else "not looked for: no TensorFlow is installed")
    wanted = [
        requirement.partition(";")[0].strip()
        for requirement in machine.requirements(name)
        if "and-cuda" in requirement.partition(";")[2]
    ]
    wrong = [problem for requirement in wanted if (problem := _misfit(machine, requirement))]
    if not wrong:
        return passed(f"{len(wanted)} packages, as tensorflow {here[name]} wants them")
    found = wrong[0] if len(wrong) == 1 else f"{wrong[0]}, and {len(wrong) - 1} more of {len(wanted)} not as wanted"
    if machine.sight().gpus and any("-cuda-nvcc-" in problem for problem in wrong) and not _has_compiler(machine):
        why = "TensorFlow sees its GPUs, but XLA has no ptxas and libdevice, without which it compiles nothing"
        return warned(found, why, f"pip install 'tensorflow[and-cuda]=={here[name]}', or train with --xla off")
    if machine.sight().gpus:
        return passed("TensorFlow finds CUDA libraries other than its own packages")
    return failed(
        found,
        "TensorFlow's CUDA libraries come as packages of their own, and it loads all of them or uses no GPU",
        f"pip install 'tensorflow[and-cuda]=={here[name]}'",
    )


def _without(told: Driver) -> Finding:
    """What is said of GPUs that the driver does not see."""
    if told.late:
        return warned("not known", told.problem, "see nvidia.driver")
    return passed(NONE_HERE)


def _misfit(machine: Machine, requirement: str) -> str:
    """What is wrong with a package that is required, such as ``nvidia-nccl-cu12<3.0,>=2.27.7``."""
    end = next((index for index, letter in enumerate(requirement) if letter in "<>=!~ ("), len(requirement))
    name, ranges = requirement[:end], requirement[end:]
    version = machine.version(name)
    if not version:
        return f"{name} is missing"
    return "" if fits(version, ranges) else f"{name} is {version}, not {ranges.strip(' ()')}"


def _has_compiler(machine: Machine) -> bool:
    """Whether CUDA's toolkit is installed, with what XLA takes from it."""
    toolkit = machine.root / "usr/local/cuda/nvvm/libdevice"
    return toolkit.is_dir() or shutil.which("ptxas", path=machine.environment.get("PATH", "")) is not None


def seen(machine: Machine) -> Finding:
    """Whether TensorFlow sees the GPUs that the driver sees, and if not, what the usual cause is."""
    gpus = machine.driver().gpus
    if not installed(machine):
        return passed("not asked: no TensorFlow is installed")
    if not gpus and not machine.sight().gpus:
        return _without(machine.driver())
    sight = machine.sight()
    if len(sight.gpus) >= len(gpus):
        return passed(f"TensorFlow sees {_count(len(sight.gpus))}, as the driver does")
    if not sight.gpus and (sight.problem or sight.late):
        return warned("not known", "TensorFlow cannot be imported", "see tensorflow.import")
    return diagnose_unseen_gpu(machine, f"TensorFlow sees {len(sight.gpus)} of {_count(len(gpus))}")


def _count(number: int) -> str:
    return f"{number} GPU{'s' if number != 1 else ''}"


def memory(machine: Machine) -> Finding:
    """Whether there is memory left on the GPUs, and whether TensorFlow takes only what it needs."""
    told = machine.driver()
    if not told.gpus:
        return _without(told)
    growth = machine.environment.get("TF_FORCE_GPU_ALLOW_GROWTH")
    if growth == "false":
        why = "TF_FORCE_GPU_ALLOW_GROWTH=false overrides plans: TensorFlow takes all of a GPU's memory at once"
        return warned("taken all at once", why, "unset TF_FORCE_GPU_ALLOW_GROWTH")
    if growth not in (None, "true"):
        why = "TensorFlow reads only true and false, and a plan's own setting holds"
        return warned(f"TF_FORCE_GPU_ALLOW_GROWTH={growth}", why, "unset it: plans let memory grow anyway")
    full = [f"{name} {share:.0%}" for name, share in told.taken if share >= FULL]
    if full:
        why = "other processes have nearly all of its memory"
        return warned(f"in use: {', '.join(full)}", why, "end them, or choose other GPUs: nvidia-smi lists them")
    return passed("grows as a plan needs it; there is room on every GPU")
