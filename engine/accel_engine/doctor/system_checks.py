"""Checks what the system gives a training process: processors, memory, limits, and the network of a cluster."""

import os
import resource
import socket
from pathlib import Path

import psutil

from accel_engine.control_groups import processor_quota
from accel_engine.devices.host_probe import processors
from accel_engine.devices.pci_address import normalize_bus_id, read_word
from accel_engine.devices.tpu_chips import find_chips
from accel_engine.doctor.check import CheckFinding, failed, passed, warned, worst
from accel_engine.doctor.check_inputs import Machine
from accel_engine.errors import UsageError
from accel_engine.memory import available_memory
from accel_engine.strategies.cluster_spec import ClusterSpec, is_batch_shell
from accel_engine.words import numbers

FEW_FILES = 1024
"""Open files below which folders of many files, and several workers, reach the limit."""

SHARED_MEMORY = 1 << 30
"""Bytes of ``/dev/shm`` that NCCL needs for several GPUs without NVLink; Docker gives 64 MiB."""

LITTLE_SWAP = 64 << 30
"""Bytes of memory below which a machine without swap kills engines where others would only slow down."""


def check_limits(machine: Machine) -> CheckFinding:
    """Check the limits of open files and of locked memory, and the size of shared memory."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    problems = []
    if files != resource.RLIM_INFINITY and files < FEW_FILES:
        problems.append(
            warned(
                f"at most {files:,} open files",
                "folders of many files, and several workers, need more",
                f"run ulimit -n {4 * FEW_FILES} before accel-tui",
            )
        )
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if locked != resource.RLIM_INFINITY and _has_vfio(machine):
        problems.append(
            failed(
                f"at most {numbers.size(locked)} of locked memory",
                "libtpu locks the memory that it shares with the chips (vfio)",
                "run ulimit -l unlimited; start a container with --privileged or --ulimit memlock=-1",
            )
        )
    shared = _shared_memory(machine.root)
    if len(machine.driver().gpus) > 1 and shared is not None and shared < SHARED_MEMORY:
        problems.append(
            warned(
                f"/dev/shm has {numbers.size(shared)}",  # noqa: S108 (no file is made there)
                "NCCL exchanges gradients of several GPUs through it, and fails when it is full",
                "start the container with --shm-size 8g, or --ipc host",
            )
        )
    return worst(problems) or passed(f"{files:,} open files" if files != resource.RLIM_INFINITY else "no limit")


def _has_vfio(machine: Machine) -> bool:
    return any("vfio" in str(node) for chip in find_chips(machine.root) for node in chip.nodes)


def _shared_memory(root: Path) -> int | None:
    """Bytes of ``/dev/shm``; ``None`` if there is none."""
    try:
        status = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return status.f_blocks * status.f_frsize


def check_processors(machine: Machine) -> CheckFinding:
    """Check whether a control group gives fewer processors than TensorFlow counts, and where the memory is."""
    count, quota = processors(), processor_quota(machine.root)
    if quota is not None and quota < count:
        return warned(
            f"{quota:g} of {count} processors by the control group's quota",
            f"TensorFlow starts {count} threads, which the quota stops for part of each period",
            f"train with --threads {max(1, int(quota))}, or give the container whole processors (--cpuset-cpus)",
        )
    nodes = len(list((machine.root / "sys/devices/system/node").glob("node[0-9]*")))
    where = f" on {nodes} NUMA nodes" if nodes > 1 else ""
    if nodes > 1 and (far := _far_gpus(machine)):
        node, names = far
        return warned(
            f"{count} processors{where}, none of them on {names}'s",
            f"every copy to {names} crosses from one processor's memory to the other's",
            f"start accel-tui with numactl --cpunodebind={node} --membind={node}, or let the scheduler bind it so",
        )
    if nodes > 1 and machine.driver().gpus:
        return passed(f"{count} processors{where}; numactl can bind a run to the node of its GPU")
    return passed(f"{numbers.counted(count, 'processor')}{where}")


def _far_gpus(machine: Machine) -> tuple[str, str] | None:
    """The node of the first GPU whose processors this process may not use, and the ids of the GPUs there."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    far: dict[str, list[str]] = {}
    for gpu in machine.driver().gpus:
        node = read_word(machine.root / "sys/bus/pci/devices" / normalize_bus_id(gpu.address) / "numa_node")
        if not node.isdecimal():  # -1: the machine does not tell
            continue
        beside = _parse_processors(read_word(machine.root / f"sys/devices/system/node/node{node}/cpulist"))
        if mine and beside and not mine & beside:
            far.setdefault(node, []).append(gpu.id)
    return next(((node, " and ".join(gpus)) for node, gpus in far.items()), None)


def _parse_processors(text: str) -> set[int]:
    """Parse a list of processors as the kernel writes it: ``0-3,8`` is 0, 1, 2, 3 and 8."""
    processors: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        processors |= set(range(int(first), int(last or first) + 1))
    return processors


def check_memory(machine: Machine) -> CheckFinding:
    """Check whether the host has as much memory as a GPU, and swap if it has little."""
    total, free = psutil.virtual_memory().total, available_memory()
    summary = f"{numbers.size(free)} of {numbers.size(total)} available"
    largest = max((gpu.memory or 0 for gpu in machine.driver().gpus if not gpu.unified), default=0)
    if free < largest:
        return warned(
            summary,
            f"a GPU has {numbers.size(largest)}: data and checkpoints that fit there may not fit here",
            "raise the memory limit of the container or job, or read data lazily from files",
        )
    if not psutil.swap_memory().total and total < LITTLE_SWAP and free < total / 4:
        return warned(
            summary, "without swap, the system kills an engine when memory runs out", "end other programs, or add swap"
        )
    return passed(summary)


def check_cluster(machine: Machine) -> CheckFinding:
    """Check whether the processes of a cluster (``TF_CONFIG``, Slurm) can find each other from here."""
    try:
        cluster = ClusterSpec.find(machine.environment)
    except UsageError as error:
        return failed("the environment describes no usable cluster", str(error), "correct it, or unset it")
    if problem := _interface_problem(machine):
        return problem
    if cluster is None and is_batch_shell(machine.environment):
        tasks = machine.environment["SLURM_NTASKS"]
        cause = f"the batch shell of a Slurm job is one process, not its {tasks} tasks"
        return warned("this process trains alone", cause, "start accel-tui with srun to train in all tasks")
    if cluster is None:
        return passed("this process trains alone")
    hosts = dict.fromkeys(address.rpartition(":")[0].strip("[]") for address in cluster.peers.values())
    if unknown := [host for host in hosts if not _resolves(host)]:
        cause = f"no address is known for {', '.join(unknown)}"
        return failed(f"{cluster.source}: {len(cluster.processes)} processes", cause, "correct /etc/hosts or the DNS")
    return passed(f"{cluster.source}: {len(cluster.processes)} processes, this one is {cluster.name}")


def _interface_problem(machine: Machine) -> CheckFinding | None:
    """The finding if ``NCCL_SOCKET_IFNAME`` names a network interface that does not exist; its names are prefixes."""
    variable = machine.environment.get("NCCL_SOCKET_IFNAME", "")
    try:
        known = sorted(path.name for path in (machine.root / "sys/class/net").iterdir())
    except OSError:
        return None
    exact = variable.startswith("=")
    wanted = [name for name in variable.removeprefix("=").split(",") if name]
    if not wanted or variable.startswith("^"):
        return None
    if any(name == given or (not exact and name.startswith(given)) for name in known for given in wanted):
        return None
    cause = f"this machine has {', '.join(known)}"
    return failed(f"NCCL_SOCKET_IFNAME={variable}: no such interface", cause, "name one of them, or unset it")


def _resolves(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True
