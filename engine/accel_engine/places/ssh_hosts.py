"""Starts one run on several machines over SSH, which see the run's directory under the same path."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.json_values import Text, decode_or_none
from accel_engine.keep_alive.restart import STARTED_BY_PLACE
from accel_engine.places import PlaceRequest
from accel_engine.places.launched import LOG, LaunchedPlace, Member
from accel_engine.places.place import PlacedJob, program_command, run_attached, run_tool, told_devices
from accel_engine.process.engine_process import find_installation
from accel_engine.run.directory.run_paths import home
from accel_engine.run.store.database import DATABASE
from accel_engine.ssh import ssh_command, ssh_program
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.text import printable_line
from accel_engine.version import __version__

_PACKAGE = "OpenSSH's client"


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What a machine says of itself."""

    version: Text
    """accel-tui's version there."""
    problem: Text
    """Why no engine can be started there; empty if it can."""
    gpus: tuple[Text, ...]
    """Names of its GPUs."""
    port: int
    """A port that was free."""


def answer(directory: Path | None) -> HostAnswer:
    """What this machine answers to :class:`SshHosts`.

    Args:
        directory: A run that it must see; ``None`` for none.
    """
    problem = find_installation().problem
    if directory is not None and not (directory / DATABASE).is_file():
        problem = f"there is no {directory}: the machines need a shared directory of runs (ACCEL_TUI_HOME)"
    gpus = tuple(device.name for device in detect().devices if device.kind == "gpu" and not device.problem)
    with socket.create_server(("", 0)) as listener:
        return HostAnswer(__version__, problem, gpus, listener.getsockname()[1])


class SshHosts(LaunchedPlace):
    """Some machines, each with one process of the run; the first one has the chief."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """What ``ssh`` takes as their destinations.

        Raises:
            UsageError: One is named twice, or is none.
        """
        names = tuple(each.strip() for each in self.name.detail.split(","))
        if wrong := [name for name in names if not name or name.startswith("-") or printable_line(name) != name]:
            raise UsageError(f"{wrong[0]!r} is no destination of ssh: give --hosts HOST,HOST")
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"--hosts names {twice[0]} twice: it has one process on each; see --local-workers")
        return names

    def nodes(self, request: PlaceRequest) -> int:
        """See :meth:`Place.nodes`: one for each host."""
        if request.nodes not in (None, len(self.hosts)):
            raise UsageError(f"--nodes {request.nodes}: {self.name} names {len(self.hosts)}, so leave it out")
        return len(self.hosts)

    def describe(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.describe`: the GPUs of the host that has fewest, as all train the same."""
        if request.gpus is not None:
            return told_devices(request.gpus)
        answers = self._ask(None)
        least = min(answers, key=lambda each: len(each.gpus))
        return told_devices(len(least.gpus), least.gpus[0] if least.gpus else "")

    def run(self, job: PlacedJob, words: Sequence[str], should_stop: Callable[[], bool]) -> int:  # noqa: ARG002 (the host is named)
        """See :meth:`Place.run`."""
        if len(self.hosts) > 1:
            raise UsageError(f"{self.name} names {len(self.hosts)} machines: give one")
        there = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(program_command(words))}"
        return run_attached(ssh_command(self.hosts[0], there), _PACKAGE, should_stop)

    def start(self, job: PlacedJob, tell: Callable[[str], bool]) -> list[Member]:
        """See :meth:`LaunchedPlace.start`."""
        tell(f"asking {', '.join(self.hosts)}")
        answers = self._ask(job.directory)
        addresses = [f"{_address(host)}:{each.port}" for host, each in zip(self.hosts, answers, strict=True)]
        cluster = ClusterSpec(tuple(addresses)) if len(addresses) > 1 else None
        if not tell(f"starting on {', '.join(self.hosts)}"):
            return []
        log = (job.directory / LOG).open("ab")
        with log:
            return [
                _Connected(host, self._command(host, job.directory, cluster, index), log.fileno(), job.directory)
                for index, host in enumerate(self.hosts)
            ]

    def _ask(self, directory: Path | None) -> list[HostAnswer]:
        """What the machines answer, all at once.

        Raises:
            RunError: One cannot be reached.
            UsageError: One cannot train.
        """
        words = [sys.executable, "-P", "-m", "accel_engine.places", "answer", str(directory or "")]
        with ThreadPoolExecutor(len(self.hosts)) as threads:
            texts = list(threads.map(lambda host: _run(host, words), self.hosts))
        answers = []
        for host, text in zip(self.hosts, texts, strict=True):
            found = decode_or_none(text.strip().rpartition("\n")[2], HostAnswer)
            if found is None:
                raise UsageError(
                    f"{host} has no accel-tui at {sys.executable}: the machines need the same installation"
                )
            if found.version != __version__:
                raise UsageError(f"{host} has accel-tui {found.version}, and this machine {__version__}")
            if found.problem:
                raise UsageError(f"{host}: {found.problem}")
            answers.append(found)
        return answers

    def _command(self, host: str, directory: Path, cluster: ClusterSpec | None, index: int) -> list[str]:
        """The command that starts the process of a host."""
        variables = {"ACCEL_TUI_HOME": str(home().absolute()), STARTED_BY_PLACE: str(self.name)}
        if cluster is not None:
            member = cluster.processes[index]
            variables["TF_CONFIG"] = member.to_tf_config()
        settings = [f"{name}={value}" for name, value in variables.items()]
        unset = () if cluster else ("-u", "TF_CONFIG")
        start = [sys.executable, "-P", "-m", "accel_engine.places", "start", str(directory)]
        words = shlex.join(["env", *unset, *settings, *start])
        return ssh_command(host, f"cd {shlex.quote(os.getcwd())} && exec {words}", has_input=False)


class _Connected:
    """A process on a host, as far as the connection tells."""

    def __init__(self, host: str, command: list[str], log: int, directory: Path) -> None:
        self.name = host
        self._directory = directory
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )

    def poll(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        words = [sys.executable, "-P", "-m", "accel_engine.places", "kill", str(self._directory)]
        try:
            _run(self.name, words)
        except (RunError, UsageError) as error:
            print(error, flush=True)  # noqa: T201 (this is the log of who starts it)


def _run(host: str, words: list[str]) -> str:
    command = ssh_command(host, shlex.join(words), has_input=False)
    return run_tool(command, _PACKAGE, what=f"{host} cannot be asked over SSH")


def _address(host: str) -> str:
    """The name or address of a host by the user's configuration of ``ssh``, by which the others reach it."""
    for line in run_tool([ssh_program(), "-G", host], _PACKAGE).splitlines():
        key, _, value = line.partition(" ")
        if key == "hostname" and value:
            return value.strip()
    return host
