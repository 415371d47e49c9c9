"""Reads the cluster of processes that train together from the environment.

The source is ``TF_CONFIG``, which launchers of distributed TensorFlow set, or Slurm's variables. TensorFlow's runtime
connects the processes.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from accel_engine.errors import UsageError

BASE_PORT = 12345
"""Base port of workers under Slurm; an offset distinguishes jobs on one machine and tasks of one job."""

PORTS = 8
"""Ports of a job's step on each node, unless Slurm has reserved others."""

RESERVED_PORTS = "SLURM_STEP_RESV_PORTS"
"""Environment variable with the ports of ``srun --resv-ports``."""

LOCAL = "ACCEL_TUI_LOCAL_WORKERS"
"""Environment variable that marks workers started by an engine on its own machine."""

ROLES = ("chief", "worker", "ps", "evaluator")
"""TensorFlow's task types."""

CHIEF = "worker 0"
"""The worker that also validates, saves, and writes the run."""

COORDINATOR = "coordinator"
"""The process that writes the run with parameter servers."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The processes of a cluster, and this process's role."""

    workers: tuple[str, ...]
    """Addresses ``host:port`` of the workers, the chief first."""
    servers: tuple[str, ...] = ()
    """Addresses of the parameter servers; empty where every worker holds the weights."""
    role: str = "worker"
    """This process's task type: ``worker``, ``ps``, or ``chief`` if it only coordinates workers."""
    index: int = 0
    """This process's task index."""
    source: str = "TF_CONFIG"
    """Where the cluster was read from: ``TF_CONFIG`` or ``Slurm``."""
    local: bool = False
    """Whether an engine has started all processes on one machine."""
    coordinator: str = ""
    """Address of the coordinator; empty where workers train synchronously."""

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> Self | None:
        """Read this process's cluster; ``None`` for a single process.

        Raises:
            UsageError: The environment describes an invalid cluster.
        """
        if text := environment.get("TF_CONFIG", "").strip():
            return cls._from_tf_config(text, local=LOCAL in environment)
        if _has_slurm_tasks(environment) and not is_batch_shell(environment):
            return cls._from_slurm(environment)
        return None

    @property
    def chief(self) -> bool:
        """Whether this process is the chief, which writes the main run."""
        return self.role == "chief" or (self.role == "worker" and self.index == 0 and not self.coordinator)

    @property
    def coordinated(self) -> bool:
        """Whether a coordinator schedules the steps of the others."""
        return bool(self.servers)

    @property
    def serves(self) -> bool:
        """Whether this process serves a coordinator."""
        return self.coordinated and not self.chief

    @property
    def processes(self) -> tuple[Self, ...]:
        """The cluster from the view of each of its processes, the chief first."""
        workers = [replace(self, role="worker", index=index) for index in range(len(self.workers))]
        servers = [replace(self, role="ps", index=index) for index in range(len(self.servers))]
        return (*[replace(self, role="chief", index=0)] * bool(self.coordinator), *workers, *servers)

    @property
    def run_directory_name(self) -> str:
        """The name of this process's run directory inside the chief's run."""
        return f"ps{self.index}" if self.role == "ps" else str(self.index)

    @property
    def peers(self) -> dict[str, str]:
        """The addresses of the other processes that this one needs, by name."""
        if self.serves:
            return {COORDINATOR: self.coordinator}
        everyone = {f"worker {index}": address for index, address in enumerate(self.workers)}
        everyone |= {f"parameter server {index}": address for index, address in enumerate(self.servers)}
        if self.coordinator:
            everyone[COORDINATOR] = self.coordinator
        return {name: address for name, address in everyone.items() if name != self.name}

    @property
    def name(self) -> str:
        """The display name of this process."""
        return {"ps": f"parameter server {self.index}", "chief": COORDINATOR}.get(self.role, f"worker {self.index}")

    def to_tf_config(self) -> str:
        """Return the cluster as a value of ``TF_CONFIG``."""
        spec = {"chief": [self.coordinator] * bool(self.coordinator), "worker": self.workers, "ps": self.servers}
        addresses = {role: list(values) for role, values in spec.items() if values}
        return json.dumps({"cluster": addresses, "task": {"type": self.role, "index": self.index}})

    @classmethod
    def _from_tf_config(cls, text: str, *, local: bool) -> Self | None:
        try:
            config = json.loads(text)
            spec = {role: tuple(str(address) for address in known) for role, known in config["cluster"].items()}
            role, index = str(config["task"]["type"]), int(config["task"]["index"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                'TF_CONFIG is invalid; expected {"cluster": {"worker": ["HOST:PORT", ...]}, '
                f'"task": {{"type": "worker", "index": 0}}}}: {error!r}'
            ) from error
        if unknown := [name for name in (*spec, role) if name not in ROLES]:
            raise UsageError(f"TF_CONFIG has an unknown task type {unknown[0]!r}; known: {', '.join(ROLES)}")
        if not 0 <= index < len(spec.get(role, ())):
            raise UsageError(f"TF_CONFIG sets the task {role} {index}, but its cluster has no such task")
        for address in (address for known in spec.values() for address in known):
            if not is_address(address):
                valid = "HOST:PORT, with the name or address of a host and a port from 1 to 65535"
                raise UsageError(f"TF_CONFIG has an invalid address {address!r}: use {valid}")
        chief, workers, servers = spec.get("chief", ()), spec.get("worker", ()), spec.get("ps", ())
        if servers:
            return cls(workers, servers, role, index, local=local, coordinator=chief[0] if chief else "")
        # Without parameter servers the chief is the first worker.
        index += len(chief) if role == "worker" else 0
        everyone = (*chief, *workers)
        return cls(everyone, index=index, local=local) if len(everyone) > 1 else None

    @classmethod
    def _from_slurm(cls, environment: Mapping[str, str]) -> Self:
        try:
            nodes = environment.get("SLURM_STEP_NODELIST") or environment["SLURM_JOB_NODELIST"]
            counts = environment.get("SLURM_STEP_TASKS_PER_NODE") or environment["SLURM_TASKS_PER_NODE"]
            hosts = expand_hosts(nodes)
            places = _task_places(expand_counts(counts), environment)
            ports = _slurm_ports(environment)
            most = max((local + 1 for _, local in places), default=0)
            if most > len(ports):
                raise ValueError(f"{most} tasks of a node have {len(ports)} ports")
            _check_gpus(most, environment)
            workers = tuple(f"{hosts[node]}:{ports[local]}" for node, local in places)
            index = int(environment["SLURM_PROCID"])
        except (KeyError, ValueError, IndexError) as error:
            raise UsageError(f"Slurm's variables do not describe a cluster: {error}") from error
        if index >= len(workers):
            raise UsageError(f"Slurm sets the task {index}, but its nodes have only {len(workers)} tasks")
        return cls(workers, index=index, source="Slurm")


def is_address(text: str) -> bool:
    """Whether a text is an address that can be connected to, ``host:port``: not ``gpu..1:2222``."""
    host, _, port = text.rpartition(":")
    try:
        host.strip("[]").encode("idna")  # as a connection does
    except UnicodeError:
        return False
    return bool(re.fullmatch(r"\S+", host) and re.fullmatch(r"\d{1,5}", port) and 0 < int(port) < 1 << 16)


def is_batch_shell(environment: Mapping[str, str]) -> bool:
    """Whether this is the shell of a Slurm job of several tasks: one process, and none that ``srun`` has started."""
    is_job = "SLURM_JOB_ID" in environment and not {"SLURM_STEP_ID", "SLURM_STEPID"} & environment.keys()
    return is_job and _has_slurm_tasks(environment)


def _has_slurm_tasks(environment: Mapping[str, str]) -> bool:
    return "SLURM_PROCID" in environment and environment.get("SLURM_NTASKS", "1") != "1"


def _slurm_ports(environment: Mapping[str, str]) -> range:
    """The ports of a step's tasks on each node: those that Slurm has reserved, or else others for each job and step."""
    first, dash, last = environment.get(RESERVED_PORTS, "").partition("-")
    if dash:
        return range(int(first), int(last) + 1)
    step = environment.get("SLURM_STEP_ID") or environment.get("SLURM_STEPID") or "0"
    start = BASE_PORT + (int(environment.get("SLURM_JOB_ID", "0")) * 31 + int(step)) % 1000 * PORTS
    return range(start, start + PORTS)


def _check_gpus(tasks: int, environment: Mapping[str, str]) -> None:
    """Check that each task of a node has separate GPUs.

    Raises:
        ValueError: All tasks see the same GPUs.
    """
    seen = [each for each in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()]
    of_node = environment.get("SLURM_GPUS_ON_NODE", "")
    is_bound = any(name in environment for name in ("SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK"))
    if tasks > 1 and not is_bound and of_node.isdecimal() and 0 < int(of_node) == len(seen):
        raise ValueError(f"{tasks} tasks of a node see the same GPUs: give each its own with srun --gpus-per-task=1")


def _task_places(counts: list[int], environment: Mapping[str, str]) -> list[tuple[int, int]]:
    """The node of each task, and its place there, with the distribution block, cyclic or plane.

    Args:
        counts: Number of tasks of each node.
        environment: Says where this task is.

    Raises:
        KeyError: The environment has no ``SLURM_PROCID``.
        ValueError: None of these distributions gives this task its place, or a variable is not a number.
    """
    index = int(environment["SLURM_PROCID"])
    own = tuple(int(environment.get(name, -1)) for name in ("SLURM_NODEID", "SLURM_LOCALID"))
    planes = int(environment.get("SLURM_DIST_PLANESIZE") or 0)
    # A block of all of a node's tasks comes first, then planes, of which cyclic has one task each.
    sizes = [planes] if planes > 0 else [max(counts, default=1), 1]
    found = [_in_planes(counts, size) for size in sizes]
    if -1 in own or index >= len(found[0]):
        return found[0]
    for places in found:
        if places[index] == own:
            return places
    raise ValueError(
        f"task {index} is task {own[1]} of node {own[0]}: only --distribution block, cyclic and plane are supported"
    )


def _in_planes(counts: list[int], size: int) -> list[tuple[int, int]]:
    """The node of each task, and its place there, if each node in turn gets up to ``size`` tasks."""
    rounds = range(0, max(counts, default=0), size)
    return [
        (node, local)
        for first in rounds
        for node, count in enumerate(counts)
        for local in range(first, min(first + size, count))
    ]


def expand_hosts(text: str) -> list[str]:
    """Expand Slurm's list of hosts: ``gpu[01-03,7],login`` is ``gpu01 gpu02 gpu03 gpu7 login``.

    Raises:
        ValueError: The text is not such a list.
    """
    hosts = []
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        prefix, bracket, rest = item.partition("[")
        ranges, _, suffix = rest.partition("]")
        if not bracket:
            hosts.append(item)
            continue
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            hosts += [f"{prefix}{number:0{len(first)}d}{suffix}" for number in numbers]
    return hosts


def expand_counts(text: str) -> list[int]:
    """Expand Slurm's tasks per node: ``2(x3),1`` is 2, 2, 2, 1.

    Raises:
        ValueError: The text is not such a list.
    """
    counts = []
    for item in text.split(","):
        count, _, times = item.partition("(x")
        counts += [int(count)] * int(times.rstrip(")") or 1)
    return counts
