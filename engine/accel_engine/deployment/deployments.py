"""The deployments of this machine: a directory each, with its record, its versions and the state of its server.

A deployment is served while a process of the model server runs on the link ``current`` in its directory. Nothing else
says so: a server that was killed, or a machine that was started again, leaves a deployment that is stopped.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from accel_engine.deployment.deploy_options import read_name
from accel_engine.errors import AccelError, UsageError, file_errors
from accel_engine.files import private_directory, replacing
from accel_engine.json_values import JsonValueError, decode, decode_file, encode
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import home, plain_name
from accel_engine.text import suggestion

RECORD, STATE, BESIDE, LOG, VERSIONS, CURRENT, LOCK = (
    "deployment.json",
    "server.json",
    "beside.json",
    "log.txt",
    "versions",
    "current",
    "deployment.lock",
)
"""The files of a deployment's directory: its record, the server's state, the state of one that is tried beside, its
log, the folders of its versions, the link to the one that is served, and the lock of whoever changes it."""

SERVER = "accel_engine.model_server"
"""The module of the server, by which its process is known."""

_END_SECONDS = 10.0
"""How long a server may take to end before it is killed."""


class DeployError(AccelError):
    """A deployment that cannot be made, found or changed."""


@dataclass(frozen=True, slots=True)
class DeployedVersion:
    """A version of a deployment."""

    number: int
    """From 1."""
    run: str
    """The run that trained it."""
    step: int
    """Steps that it was trained for."""
    format: str
    """Its format and precision in a word."""
    made: float
    """When, in seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A deployment, as its record has it."""

    name: str
    host: str
    port: int
    grpc_port: int | None = None
    threads: int | None = None
    max_queue: int = 1024
    device: str = "cpu"
    """The device of its server: ``cpu``, or such as ``gpu:0``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its server, which show the device."""
    token_file: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    versions: tuple[DeployedVersion, ...] = ()
    """The versions whose folders exist."""
    current: int = 0
    """The number of the version that is served."""
    previous: int = 0
    """The number of the one before it; 0 if there is none."""

    @property
    def directory(self) -> Path:
        """Where it is."""
        return deployments_directory() / self.name

    @property
    def url(self) -> str:
        """The URL of its server."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else self.host  # noqa: S104 (what it listens on)
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self.tls_certificate else 'http'}://{shown}:{self.port}"

    @property
    def version(self) -> DeployedVersion:
        """The version that is served.

        Raises:
            DeployError: Its record is not whole.
        """
        return self.version_of(self.current)

    def version_of(self, number: int) -> DeployedVersion:
        """A version by its number.

        Raises:
            DeployError: There is no version of this number.
        """
        found = next((each for each in self.versions if each.number == number), None)
        if found is None:
            raise DeployError(f"the deployment {self.name} has no version {number}")
        return found

    def folder(self, number: int) -> Path:
        """The folder of a version."""
        return self.directory / VERSIONS / str(number)

    @property
    def next_number(self) -> int:
        """The number of a new version, which no folder has."""
        with suppress(OSError):
            names = [each for each in os.listdir(self.directory / VERSIONS) if each.isdecimal()]
            return max(map(int, names), default=0) + 1
        return 1

    def with_version(self, version: DeployedVersion) -> "Deployment":
        """The same with a version that takes over from the current one; older versions than that are left out."""
        kept = tuple(each for each in self.versions if each.number == self.current)
        return replace(self, versions=(*kept, version), current=version.number, previous=self.current)


@dataclass(frozen=True, slots=True)
class ServerState:
    """The process and the addresses of a server, which it writes while it listens."""

    pid: int
    host: str
    port: int
    started: float
    grpc_port: int | None = None


def deployments_directory() -> Path:
    """The directory of all deployments; it may not exist yet."""
    return home() / "deployments"


def default_name(run: Path) -> str:
    """A run's id without its code; the whole id where a deployment of that name is of another run, or unreadable."""
    name = plain_name(run)
    directory = deployments_directory() / name
    if directory.exists():
        with suppress(AccelError):
            if read_deployment(name).version.run == run.name:
                return name
        return run.name
    return name


def all_deployments() -> tuple[list[Deployment], list[str]]:
    """All deployments by name, and why others cannot be read."""
    found, problems = [], []
    directory = deployments_directory()
    names = sorted(each.name for each in directory.iterdir()) if directory.is_dir() else []
    for name in names:
        if (directory / name / RECORD).is_file():
            try:
                found.append(read_deployment(name))
            except DeployError as error:
                problems.append(str(error))
    return found, problems


def find_deployment(name: str) -> Deployment:
    """A deployment by its name.

    Raises:
        UsageError: There is no deployment of this name.
        DeployError: Its record cannot be read.
    """
    read_name(name)
    if name and (deployments_directory() / name / RECORD).is_file():
        return read_deployment(name)
    names = [each.name for each in all_deployments()[0]]
    hint = suggestion(name, names) if names else "there are none: accel-tui deploy RUN makes one"
    raise UsageError(f"no deployment {name!r}; {hint}")


def read_deployment(name: str) -> Deployment:
    """Read the record of a deployment.

    Raises:
        DeployError: The record cannot be read.
    """
    path = deployments_directory() / name / RECORD
    try:
        return replace(decode(path.read_text("utf-8"), Deployment), name=name)
    except (OSError, UnicodeDecodeError, JsonValueError) as error:
        raise DeployError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def write_deployment(deployment: Deployment) -> None:
    """Write the record of a deployment, whole.

    Raises:
        DeployError: The record cannot be written.
    """
    path = deployment.directory / RECORD
    with file_errors(f"cannot write {path}", DeployError), replacing(path) as temporary:
        temporary.write_text(encode(deployment) + "\n", "utf-8")


@contextmanager
def changing(name: str) -> Iterator[Path]:
    """The directory of a deployment that nobody else changes in the block; it is made if it is not there.

    Raises:
        DeployError: Another command changes the deployment, or its directory cannot be written.
    """
    directory = deployments_directory() / name
    with file_errors(f"cannot write {directory}", DeployError):
        private_directory(directory / VERSIONS)
    try:
        with WriterLock(directory, LOCK):
            try:
                _recover(directory)
                yield directory
            finally:
                if not (directory / RECORD).exists():  # nothing was deployed
                    shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError as error:
        raise DeployError(f"another command changes the deployment {name} now") from error


def serve_version(deployment: Deployment, number: int) -> None:
    """Make the link ``current`` lead to a version, in one step.

    Raises:
        DeployError: The link cannot be written.
    """
    link = deployment.directory / CURRENT
    with file_errors(f"cannot write {link}", DeployError), replacing(link) as temporary:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(Path(VERSIONS, str(number)))


def remove_other_folders(deployment: Deployment) -> None:
    """Remove the folders of versions that the record does not have."""
    kept = {str(each.number) for each in deployment.versions}
    for folder in (deployment.directory / VERSIONS).iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)


def _recover(directory: Path) -> None:
    """End what a killed command has left: the server that it tried beside, and a link that its record does not have."""
    if process := server_process(directory, BESIDE):
        end_process(process)
    (directory / BESIDE).unlink(missing_ok=True)
    if not (directory / RECORD).exists():
        return
    with suppress(DeployError):  # which whoever changes it tells
        deployment = read_deployment(directory.name)
        with suppress(OSError):
            if os.readlink(directory / CURRENT) == os.path.join(VERSIONS, str(deployment.current)):
                return
        serve_version(deployment, deployment.current)
        if process := server_process(directory):
            process.send_signal(signal.SIGHUP)  # it may have loaded the other version


def end_process(process: "psutil.Process | subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """End a server, and wait for it; its own children end with it."""
    with suppress(psutil.NoSuchProcess):
        try:
            process.terminate()
            process.wait(_END_SECONDS)
        except (psutil.TimeoutExpired, subprocess.TimeoutExpired):
            process.kill()
            process.wait()


def end_leftovers() -> None:
    """End what killed commands have left, of deployments that nobody changes now."""
    for path in deployments_directory().glob(f"*/{BESIDE}"):
        with suppress(DeployError), changing(path.parent.name):
            pass


def read_state(directory: Path, name: str = STATE) -> ServerState | None:
    """The state that the server of a deployment has written; ``None`` if there is nothing readable."""
    return decode_file(directory / name, ServerState)


def server_process(directory: Path, name: str = STATE) -> psutil.Process | None:
    """The process of a deployment's server; ``None`` if none runs.

    Another process may have the number of one that has ended: a server is known by its command line.

    Args:
        directory: The deployment's directory.
        name: The file with the server's state.
    """
    state = read_state(directory, name)
    if state is None:
        return None
    with suppress(psutil.Error):
        process = psutil.Process(state.pid)
        words = process.cmdline()
        if SERVER in words and str(directory / name) in words and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def remove_deployment(deployment: Deployment) -> None:
    """Delete a deployment that is stopped, with the folders of its versions.

    Raises:
        DeployError: The server runs, or a file cannot be deleted.
    """
    with changing(deployment.name) as directory:
        if server_process(directory) is not None:
            raise DeployError(f"the deployment {deployment.name} is running: stop it first")
        with file_errors(f"cannot delete {directory}", DeployError):
            (directory / RECORD).unlink()  # the rest goes with it


def running_text() -> str:
    """How many deployments run, and how many are stopped: ``2 running, 1 stopped``; takes milliseconds for each."""
    found, _ = all_deployments()
    running = sum(server_process(each.directory) is not None for each in found)
    return f"{running} running, {len(found) - running} stopped" if found else "none yet"
