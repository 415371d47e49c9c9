"""Checks how NVIDIA GPUs are set up, what their drivers ask for, and how they are connected."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from accel_engine.devices.cuda_visible_devices import ORDER, VISIBLE
from accel_engine.devices.pci_address import normalize_bus_id
from accel_engine.devices.xid import BY_PROGRAMS, RECOVERIES, UNKNOWN, XIDS, kernel_errors
from accel_engine.doctor.check import CheckFinding, failed, passed, skipped, warned, worst
from accel_engine.doctor.check_inputs import GpuSettings, Machine
from accel_engine.doctor.gpu_diagnosis import missing_files
from accel_engine.doctor.nvidia_checks import index_of, without_gpu
from accel_engine.words.numbers import counted

LOW_POWER = 0.9
"""Share of a GPU's default power limit below which its limit is a finding."""

SINGLE_PROCESS, NO_PROCESS = (1, 3), 2
"""NVML's compute modes in which one process may use a GPU, and in which none may."""


def check_settings(machine: Machine) -> CheckFinding:
    """Check the compute mode, MIG, power limit and persistence of the GPUs."""
    settings = _readable(machine)
    if not settings:
        return without_gpu(machine)
    if all(gpu.compute_mode is gpu.mig is gpu.power_limit is gpu.persistence is None for gpu in settings):
        return skipped("not checked: the driver does not tell these settings")
    return worst(problem for gpu in settings for problem in _setting_problems(gpu)) or passed(
        f"{counted(len(settings), 'GPU')} for any number of processes, at full power"
    )


def _readable(machine: Machine) -> list[GpuSettings]:
    """The settings of the GPUs that respond."""
    driver = machine.driver()
    broken = {gpu.id for gpu in driver.gpus if gpu.problem}
    return [gpu for gpu in driver.settings if gpu.gpu not in broken]


def _setting_problems(gpu: GpuSettings) -> Iterator[CheckFinding]:
    index = index_of(gpu.gpu)
    if gpu.compute_mode == NO_PROCESS:
        yield failed(
            f"{gpu.gpu} is prohibited",
            "its compute mode lets no process use it",
            f"run sudo nvidia-smi --compute-mode 0 -i {index}",
        )
    if gpu.mig and not gpu.instances:
        yield failed(
            f"{gpu.gpu} has no MIG instance",
            "MIG is on, and CUDA sees instances only",
            f"to make an instance, run sudo nvidia-smi mig -cgi 0 -C -i {index} (0 is the largest; nvidia-smi mig "
            "-lgip lists the others); to switch MIG off instead, end all programs on the GPU, then run "
            f"sudo nvidia-smi -mig 0 -i {index}",
        )
    if gpu.compute_mode in SINGLE_PROCESS:
        yield warned(
            f"{gpu.gpu} serves one process at a time",
            "its compute mode is exclusive: evaluating or predicting beside a run fails",
            f"run sudo nvidia-smi --compute-mode 0 -i {index}, unless a scheduler has set it",
        )
    if gpu.power_limit and gpu.default_power and gpu.power_limit < LOW_POWER * gpu.default_power:
        yield warned(
            f"{gpu.gpu} is limited to {gpu.power_limit:.0f} W",
            f"its default is {gpu.default_power:.0f} W: it trains slower",
            f"unless it is meant so, run sudo nvidia-smi --power-limit {gpu.default_power:.0f} -i {index}",
        )
    if gpu.persistence is False:
        yield warned(
            f"{gpu.gpu}: persistence mode is off",
            "the driver is unloaded while nobody uses the GPU: each start takes seconds more",
            "run sudo nvidia-smi --persistence-mode 1, or start nvidia-persistenced",
        )


def check_health(machine: Machine) -> CheckFinding:
    """Check what the driver asks for: a reset, a restart, or that a GPU is replaced."""
    settings = _readable(machine)
    if not machine.driver().gpus:
        return without_gpu(machine)
    if found := worst(problem for gpu in settings for problem in _health_problems(gpu)):
        return found
    if broken := [gpu for gpu in machine.driver().gpus if gpu.problem]:
        names = ", ".join(gpu.id for gpu in broken)
        return warned(
            f"{names} not checked", "; ".join(f"{gpu.id}: {gpu.problem}" for gpu in broken), "see nvidia.driver"
        )
    if all(gpu.recovery is gpu.remapping is gpu.remapping_failed is gpu.pending_ecc is None for gpu in settings):
        return skipped("not checked: the driver does not tell it of these GPUs")
    return passed("no known problem")


def _health_problems(gpu: GpuSettings) -> Iterator[CheckFinding]:
    index = index_of(gpu.gpu)
    reset = RECOVERIES[1].format(index=index)
    if gpu.recovery:
        fix = RECOVERIES.get(gpu.recovery, "restart the machine").format(index=index)
        yield failed(f"{gpu.gpu} must recover", "the driver has met an error that it cannot mend by itself", fix)
    if gpu.remapping_failed:
        yield failed(
            f"{gpu.gpu}: memory rows could not be replaced",
            "its memory has more defects than spare rows",
            "train on another GPU, and have this one replaced",
        )
    if gpu.remapping:
        cause = "memory with errors is replaced at the next reset, and used until then"
        yield warned(f"{gpu.gpu}: memory rows wait to be replaced", cause, reset)
    if gpu.pending_ecc:
        cause = "error correction was switched on or off, which a restart does"
        yield warned(f"{gpu.gpu}: a change of ECC is pending", cause, "restart the machine")


def check_errors(machine: Machine) -> CheckFinding:
    """Look for errors of the GPUs in the kernel's log since the start of the machine."""
    gpus = machine.driver().gpus
    if not gpus and not machine.pci_gpus:
        return without_gpu(machine)
    if (logged := kernel_errors(machine.root)) is None:
        return skipped("not checked: the kernel's log may only be read by root: sudo dmesg | grep Xid")
    names = {normalize_bus_id(gpu.address): gpu.id for gpu in gpus}
    found = []
    for (address, number), count in Counter(logged).items():
        gpu = names.get(address, f"the GPU at {address}")
        cause, fix = XIDS.get(number, (UNKNOWN, UNKNOWN))
        finding = warned if number in BY_PROGRAMS else failed
        times = f", {count} times" if count > 1 else ""
        index = index_of(gpu) if gpu in names.values() else address
        found.append(finding(f"{gpu} had error {number} (Xid){times}", cause, fix.format(index=index)))
    return worst(found) or passed("none in the kernel's log")


def check_links(machine: Machine) -> CheckFinding:
    """Check whether several GPUs reach each other's memory: by NVLink, or by PCI without an IOMMU between them."""
    settings = _readable(machine)
    if not machine.driver().gpus:
        return without_gpu(machine)
    if len(settings) < 2:
        return skipped("not needed: fewer than two GPUs")
    links = {gpu.gpu: gpu.links for gpu in settings}
    most = max(links.values())
    if few := [f"{gpu} has {count}" for gpu, count in links.items() if count < most]:
        cause = f"{', '.join(few)} of {most} NVLinks: reducing gradients goes the way of the slowest"
        return warned("GPUs are connected differently", cause, "see nvidia-smi nvlink --status, and check the bridges")
    if most:
        return passed(f"{most} NVLinks each")
    if _translates_addresses(machine.root):
        return warned(
            "GPUs reach each other by PCI, through an IOMMU",
            "it redirects copies between them (ACS): NCCL may hang, or be slow",
            "set NCCL_P2P_DISABLE=1, or switch the IOMMU off (amd_iommu=off, intel_iommu=off) unless it is needed",
        )
    return passed("GPUs reach each other by PCI")


def _translates_addresses(root: Path) -> bool:
    """Whether an IOMMU translates the addresses of PCI devices."""
    try:
        parameters = (root / "proc/cmdline").read_text(errors="replace").split()
        has_iommu = any((root / "sys/class/iommu").iterdir())
    except OSError:
        return False
    return has_iommu and "iommu=pt" not in parameters


def check_files(machine: Machine) -> CheckFinding:
    """Check whether the device files that CUDA opens are there, and may be opened."""
    if not machine.driver().gpus:
        return without_gpu(machine)
    if machine.in_wsl:
        return skipped("not needed: WSL2 has one for all")
    if missing := missing_files(machine):
        fix = "run sudo nvidia-modprobe -u -c=0"
        if machine.in_container:
            fix = f"on the host, {fix}; then start the container again, with --gpus all"
        return failed(f"{missing[0]} is missing", "NVML works without it, but CUDA does not", fix)
    return passed("CUDA's device files are there")


def check_order(machine: Machine) -> CheckFinding:
    """Check whether numbers of GPUs mean the same to every program, and each GPU is named once."""
    gpus, environment = machine.driver().gpus, machine.environment
    entries = [entry.strip() for entry in environment.get(VISIBLE, "").split(",") if entry.strip()]
    if twice := sorted({entry for entry in entries if entries.count(entry) > 1}):
        cause = f"{VISIBLE} names {', '.join(twice)} twice: CUDA then finds no GPU"
        return failed(f"{VISIBLE}={environment[VISIBLE]!r}", cause, "name each GPU once")
    if not gpus:
        return without_gpu(machine)
    differ = len({gpu.name for gpu in gpus if not gpu.problem}) > 1
    if differ and environment.get(ORDER) != "PCI_BUS_ID" and any(entry.isdecimal() for entry in entries):
        return warned(
            f"{VISIBLE}={environment[VISIBLE]!r} counts from the fastest GPU",
            "the GPUs differ, and CUDA's order is another than nvidia-smi's and this program's",
            f"set {ORDER}=PCI_BUS_ID, or name GPUs by UUID (nvidia-smi -L)",
        )
    if (differ and environment.get(ORDER) != "PCI_BUS_ID") or any(gpu.problem for gpu in gpus):
        return passed("CUDA may number these GPUs otherwise than nvidia-smi: accel-tui uses their PCI addresses")
    return passed("nvidia-smi and CUDA count GPUs in the same way")
