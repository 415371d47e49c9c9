"""Starts one run on several machines over SSH, which see the run's directory under the same path."""

import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.json_values import Text, decode_or_none
from accel_engine.keep_alive.restart import STARTED_BY_PLACE
from accel_engine.places import PlaceRequest
from accel_engine.places.launched import LOG, LaunchedPlace, Member
from accel_engine.places.place import PlacedJob, job_folder, machine_devices, program_command, run_attached, run_tool
from accel_engine.process.engine_process import find_installation
from accel_engine.run.directory.run_paths import home, host_function
from accel_engine.run.store.database import DATABASE
from accel_engine.ssh import ssh_command, ssh_program
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.text import printable_line
from accel_engine.version import __version__

_PACKAGE = "OpenSSH's client"


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The answer of a machine to a check."""

    version: Text
    """accel-tui's version there."""
    problem: Text
    """Why no engine can be started there; empty if it can."""
    gpus: tuple[Text, ...]
    """Names of its GPUs."""
    port: int
    """A port that was free."""


def answer(directory: Path | None) -> HostAnswer:
    """The answer of this machine to :class:`SshHosts`.

    Args:
        directory: A run that it must see; ``None`` for none.
    """
    problem = find_installation().problem
    if directory is not None and not (directory / DATABASE).is_file():
        problem = f"there is no {directory}: the machines need a shared directory of runs (ACCEL_TUI_HOME)"
    gpus = tuple(device.name for device in detect().devices if device.kind == "gpu" and not device.problem)
    with socket.create_server(("", 0)) as listener:
        return HostAnswer(__version__, problem, gpus, listener.getsockname()[1])


@dataclass(frozen=True, slots=True)
class _Machine:
    """A machine that ``ssh`` reaches."""

    name: str
    """As the user calls it."""
    target: str
    """The destination of ``ssh``."""
    python: str
    """The Python there that has accel-tui."""
    note: str = ""
    """Follows the name when it cannot be reached."""

    def ask(self, *words: str) -> str:
        """Run a command of :mod:`accel_engine.places` there, and return what it prints."""
        command = shlex.join([self.python, "-P", "-m", "accel_engine.places", *words])
        there = ssh_command(self.target, command, has_input=False)
        return run_tool(there, _PACKAGE, what=f"{self.name} cannot be asked over SSH{self.note}")

    @property
    def address(self) -> str:
        """Its name or address by the user's configuration of ``ssh``, by which the others reach it."""
        for line in run_tool([ssh_program(), "-G", self.target], _PACKAGE).splitlines():
            key, _, value = line.partition(" ")
            if key == "hostname" and value:
                return value.strip()
        return self.target


class SshHosts(LaunchedPlace):
    """Some machines, each with one process of the run; the first one has the chief."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The destinations of ``ssh`` for the machines.

        Raises:
            UsageError: A host is named twice, or is not a destination.
        """
        names = tuple(each.strip() for each in self.name.detail.split(","))
        if wrong := [name for name in names if not name or name.startswith("-") or printable_line(name) != name]:
            raise UsageError(f"{wrong[0]!r} is not a destination of ssh: give --hosts HOST,HOST")
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"--hosts names {twice[0]} twice: it has one process on each; see --local-workers")
        return names

    def nodes(self, request: PlaceRequest) -> int:
        """See :meth:`Place.nodes`: one for each host."""
        if request.nodes not in (None, len(self.hosts)):
            raise UsageError(f"--nodes {request.nodes}: {self.name} names {len(self.hosts)}, so leave it out")
        return len(self.hosts)

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.machine`: the GPUs of the host that has fewest, as all train the same."""
        if request.gpus is not None:
            return machine_devices(request.gpus)
        answers = self._ask(None)
        least = min(answers, key=lambda each: len(each.gpus))
        return machine_devices(len(least.gpus), least.gpus[0] if least.gpus else "")

    @cached_property
    def _machines(self) -> list[_Machine]:
        """The hosts, of which those that the user has added are known by their names."""
        added = {host.name: host for host in host_function("host_list:read_hosts")()}
        known = ", ".join(added)
        return [
            _Machine(name, added[name].target, added[name].python or sys.executable)
            if name in added
            else _Machine(
                name, name, sys.executable, f" (a destination of ssh: the hosts are {known})" if known else ""
            )
            for name in self.hosts
        ]

    def run(self, job: PlacedJob, words: Sequence[str], should_stop: Callable[[], bool]) -> int:
        """See :meth:`Place.run`."""
        if len(self.hosts) > 1:
            raise UsageError(f"{self.name} names {len(self.hosts)} machines: give one")
        machine = self._machines[0]
        there = f"cd {shlex.quote(job_folder())} && exec {shlex.join(program_command(words, machine.python))}"
        return run_attached(ssh_command(machine.target, there), _PACKAGE, should_stop)

    def start(self, job: PlacedJob, tell: Callable[[str], bool]) -> list[Member]:
        """See :meth:`LaunchedPlace.start`."""
        tell(f"asking {', '.join(self.hosts)}")
        machines, answers = self._machines, self._ask(job.directory)
        addresses = [f"{machine.address}:{each.port}" for machine, each in zip(machines, answers, strict=True)]
        cluster = ClusterSpec(tuple(addresses)) if len(addresses) > 1 else None
        if not tell(f"starting on {', '.join(self.hosts)}"):
            return []
        log = (job.directory / LOG).open("ab")
        with log:
            return [
                _Connected(machine, self._command(machine, job.directory, cluster, index), log.fileno(), job.directory)
                for index, machine in enumerate(machines)
            ]

    def _ask(self, directory: Path | None) -> list[HostAnswer]:
        """Ask all machines at once, and return their answers.

        Raises:
            RunError: A machine cannot be reached.
            UsageError: A machine cannot train.
        """
        machines = self._machines
        with ThreadPoolExecutor(len(machines)) as threads:
            texts = list(threads.map(lambda machine: machine.ask("answer", str(directory or "")), machines))
        answers = []
        for machine, text in zip(machines, texts, strict=True):
            found = decode_or_none(text.strip().rpartition("\n")[2], HostAnswer)
            if found is None:
                raise UsageError(
                    f"{machine.name} has no accel-tui at {machine.python}: install it there under that path"
                )
            if found.version != __version__:
                raise UsageError(f"{machine.name} has accel-tui {found.version}, and this machine {__version__}")
            if found.problem:
                raise UsageError(f"{machine.name}: {found.problem}")
            answers.append(found)
        return answers

    def _command(self, machine: _Machine, directory: Path, cluster: ClusterSpec | None, index: int) -> list[str]:
        """The command that starts the process of a host."""
        variables = {"ACCEL_TUI_HOME": str(home().absolute()), STARTED_BY_PLACE: str(self.name)}
        if cluster is not None:
            member = cluster.processes[index]
            variables["TF_CONFIG"] = member.to_tf_config()
        settings = [f"{name}={value}" for name, value in variables.items()]
        unset = () if cluster else ("-u", "TF_CONFIG")
        start = [machine.python, "-P", "-m", "accel_engine.places", "start", str(directory)]
        words = shlex.join(["env", *unset, *settings, *start])
        return ssh_command(machine.target, f"cd {shlex.quote(job_folder())} && exec {words}", has_input=False)


class _Connected:
    """A process on a host, as far as the connection tells."""

    def __init__(self, machine: _Machine, command: list[str], log: int, directory: Path) -> None:
        self.name = machine.name
        self._machine, self._directory = machine, directory
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )

    def poll(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        try:
            self._machine.ask("kill", str(self._directory))
        except (RunError, UsageError) as error:
            print(error, flush=True)  # noqa: T201 (this is the log of who starts it)
