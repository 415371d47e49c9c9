"""Starts the processes of a run on the nodes of a Ray cluster, which see the run's directory under the same path.

Ray gives machines and devices; the engine processes are the same as everywhere, and find each other by ``TF_CONFIG``.
"""

import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.keep_alive.restart import STARTED_BY_PLACE
from accel_engine.places import PlaceRequest
from accel_engine.places.launched import LaunchedPlace, Member
from accel_engine.places.place import PlacedJob, job_folder, machine_devices, program_command, room_on
from accel_engine.places.ray_process import NodeProcess
from accel_engine.process.polled_command import PolledCommand
from accel_engine.run.directory.run_paths import home
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.version import __version__

ANSWER_SECONDS = 60.0
"""How long a node may take to start a process of Ray."""

CONNECT_SECONDS = 5.0
"""How long a cluster's address may take to accept a connection."""

INTERRUPTED = 130
"""Exit status of a command that is ended while it waits for a node."""

_POLL_SECONDS = 1.0

_LOOK_SECONDS = 0.3
"""How often a command is asked for what it has printed."""

_ASK_SECONDS = 10.0
"""How long a node may take to say whether its process lives."""


class RayCluster(LaunchedPlace):
    """A Ray cluster: the one that this machine belongs to, or the one at an address."""

    _group: Any = None
    _room: int = 1

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.machine`: the GPUs of the node that has most."""
        ray = self._connect()
        try:
            nodes = [node for node in ray.nodes() if node["Alive"]]
        finally:
            ray.shutdown()
        wanted = request.nodes or 1
        if len(nodes) < wanted:
            raise UsageError(f"--nodes {wanted}: the Ray cluster has {len(nodes)} that live")
        gpus = sorted((int(node["Resources"].get("GPU", 0)) for node in nodes), reverse=True)
        if request.gpus and gpus[wanted - 1] < request.gpus:
            least = f"the {wanted} nodes with most have" if wanted > 1 else "no node has more than"
            raise UsageError(f"--gpus {request.gpus}: of the Ray cluster, {least} {gpus[wanted - 1]}")
        self._room = room_on(len(nodes), gpus[wanted - 1], request)
        return machine_devices(gpus[wanted - 1] if request.gpus is None else request.gpus)

    def room(self, request: PlaceRequest) -> int:
        """See :meth:`Place.room`."""
        return self._room

    def start(self, job: PlacedJob, tell: Callable[[str], bool]) -> list[Member]:
        """See :meth:`LaunchedPlace.start`."""
        gpus, ray = job.request.gpus or 0, self._connect()
        if not self._reserve(ray, job, gpus, tell):
            return []
        members = [self._actor(ray, job, gpus, index, NodeProcess) for index in range(job.nodes)]
        try:
            answers = ray.get([each.answer.remote(str(job.directory)) for each in members], timeout=ANSWER_SECONDS)
        except Exception as error:  # Ray has many
            raise RunError(f"Ray cannot start processes on its nodes: {_first_line(error)}") from error
        for version, problem, host, _ in answers:
            if problem or version != __version__:
                raise UsageError(f"{host}: {problem or f'has accel-tui {version}, and this machine {__version__}'}")
        addresses = tuple(f"{host}:{port}" for _, _, host, port in answers)
        cluster = ClusterSpec(addresses) if job.nodes > 1 else None
        common = {"ACCEL_TUI_HOME": str(home().absolute()), STARTED_BY_PLACE: str(self.name)}
        for index, member in enumerate(members):
            more = {"TF_CONFIG": cluster.processes[index].to_tf_config()} if cluster else {}
            member.start.remote(str(job.directory), common | more, job_folder())
        return [_Remote(ray, member, answer[2]) for member, answer in zip(members, answers, strict=True)]

    def run(self, job: PlacedJob, words: Sequence[str], should_stop: Callable[[], bool]) -> int:
        """See :meth:`Place.run`: by an actor with the devices, whose output comes with each look."""
        gpus, ray = job.request.gpus or 0, self._connect()
        said = ""

        def tell(what: str) -> bool:
            nonlocal said
            if what != said:
                print(what, file=sys.stderr, flush=True)  # noqa: T201 (as Slurm's srun does)
            said = what
            return not should_stop()

        try:
            if not self._reserve(ray, job, gpus, tell):
                return INTERRUPTED
            actor = self._actor(ray, job, gpus, 0, PolledCommand)
            ray.get(actor.start.remote(program_command(words), job_folder()))
            is_told, status = False, None
            while status is None:
                if should_stop() and not is_told:
                    is_told = True
                    actor.end.remote()
                texts, status = ray.get(actor.news.remote())
                for is_error, text in texts:
                    print(text, end="", file=sys.stderr if is_error else sys.stdout, flush=True)
                time.sleep(0.0 if texts else _LOOK_SECONDS)
        except ray.exceptions.RayError as error:
            raise RunError(f"{self.name}: the node was lost: {_first_line(error)}") from error
        finally:
            self.close()
        return int(status)

    def _actor(self, ray: Any, job: PlacedJob, gpus: int, index: int, kind: type) -> Any:
        """An actor on a node of the reserved ones."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index)
        options = {"num_cpus": job.request.cpus or 1, "num_gpus": gpus, "scheduling_strategy": strategy}
        return ray.remote(kind).options(**options).remote()

    def close(self) -> None:
        """See :meth:`LaunchedPlace.close`."""
        with suppress(ImportError):
            import ray

            ray.shutdown()
        self._group = None

    def _connect(self) -> Any:
        """Ray, connected to the cluster.

        Raises:
            UsageError: Ray is not installed, or there is not a cluster.
        """
        try:
            import ray
        except ImportError as error:
            raise UsageError("Ray is not installed here: pip install 'accel-tui[ray]'") from error
        address = self.name.detail or "auto"
        _check_reachable(address)
        try:
            ray.init(address=address, namespace="accel-tui", log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            where = f"at {address}" if self.name.detail else "here (ray start --head starts one)"
            raise UsageError(f"cannot connect to a Ray cluster {where}: {_first_line(error)}") from error
        return ray

    def _reserve(self, ray: Any, job: PlacedJob, gpus: int, tell: Callable[[str], bool]) -> bool:
        """Reserve the devices of all machines, together; returns whether the run still waits when they are given."""
        bundle = {"CPU": float(job.request.cpus or 1)} | ({"GPU": float(gpus)} if gpus else {})
        if job.request.host_memory:
            bundle["memory"] = float(job.request.host_memory << 20)
        self._group = ray.util.placement_group([bundle] * job.nodes, "STRICT_SPREAD" if job.nodes > 1 else "PACK")
        ready, wanted = self._group.ready(), ", ".join(f"{count:g} {name}" for name, count in bundle.items())
        while not ray.wait([ready], timeout=_POLL_SECONDS)[0]:
            many = f"{job.nodes} nodes" if job.nodes > 1 else "no node"
            if not tell(f"Ray has {'not yet ' * (job.nodes > 1)}{many} with {wanted} free"):
                return False
        return tell("Ray has given the nodes; processes are started")


class _Remote:
    """A process on a node, as far as Ray tells."""

    def __init__(self, ray: Any, actor: Any, host: str) -> None:
        self.name = host
        self._ray, self._actor = ray, actor
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            self._status = self._ask("poll", -1)
        return self._status

    def end(self) -> None:
        self._ask("end", None)

    def _ask(self, method: str, lost: int | None) -> int | None:
        try:
            found: int | None = self._ray.get(getattr(self._actor, method).remote(), timeout=_ASK_SECONDS)
        except self._ray.exceptions.GetTimeoutError:
            return None
        except self._ray.exceptions.RayError as error:
            print(f"{self.name}: {_first_line(error)}", flush=True)  # noqa: T201 (the log of who starts it)
            return lost
        return found


def _check_reachable(address: str) -> None:
    """Raise an error if nothing listens at an address, which Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or error
        raise UsageError(f"cannot connect to a Ray cluster at {address}: {why}") from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
