"""The hosts that the user has added, in ``hosts.toml`` of the program's directory."""

import errno
import re
import shutil
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError, UsageError, file_errors
from accel_engine.files import private_directory, replacing
from accel_engine.json_values import convert
from accel_engine.run.directory.run_paths import home, hosts_directory
from accel_engine.text import is_printable, suggestion

FILE = "hosts.toml"

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,39}")

_TARGET = re.compile(r"(ssh://)?([\w.+%-]+@)?[\w.:%\[\]-]+(:\d+)?", re.ASCII)
"""What ``ssh`` takes as a destination; no blanks, quotes or signs of a shell."""

_PLACES = frozenset({"here", "any", "hosts", "ray", "slurm", "kubernetes"})
"""Names that mean another place to train."""

_LONGEST = 4096

_DELETE_SECONDS = 3.0
"""How long deleting is repeated, as what mirrors runs may still write."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that ``ssh`` reaches."""

    name: str
    """How the user calls it."""
    ssh: str = ""
    """The destination of ``ssh``; empty for the name."""
    python: str = ""
    """The Python there that has accel-tui; empty for the command ``accel-tui`` of the search path."""
    home: str = ""
    """``ACCEL_TUI_HOME`` there; empty for the default."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"invalid name {self.name!r} of a host: use up to 40 letters, digits and ._-, and begin with a letter "
                "or a digit"
            )
        if self.name in _PLACES:
            raise UsageError(f"a host cannot have the name {self.name!r}, which means another place to train")
        if self.ssh and (not _TARGET.fullmatch(self.ssh) or self.ssh.startswith("-")):
            raise UsageError(f"{self.ssh!r} is not a destination of ssh: use HOST, USER@HOST or ssh://USER@HOST:PORT")
        for path in (self.python, self.home):
            if path.startswith("-") or len(path) > _LONGEST or not all(map(is_printable, path)):
                raise UsageError(f"{path!r} is not a path on a host")

    @property
    def target(self) -> str:
        """The destination of ``ssh``."""
        return self.ssh or self.name

    @property
    def directory(self) -> Path:
        """Where its runs are mirrored."""
        return hosts_directory() / self.name


_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""Errors by which there are no hosts; who creates a run tells what is wrong with its directory."""


def read_hosts() -> tuple[Host, ...]:
    """The hosts, in the order in which they were added.

    Raises:
        UsageError: The file is invalid.
    """
    path = home() / FILE
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _NO_FILE:
            return ()
        raise UsageError(f"{path} cannot be read: {error}") from error
    try:
        return tuple(Host(name, **convert(values, dict[str, str])) for name, values in tables.items())
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: a host has only ssh, python and home, each a text: {error}") from error


def find_host(name: str) -> Host:
    """The host with this name.

    Raises:
        UsageError: There is no host of this name, or the file is invalid.
    """
    hosts = read_hosts()
    for host in hosts:
        if host.name == name:
            return host
    known = suggestion(name, [host.name for host in hosts]) if hosts else f"add it: accel-tui hosts add {name}"
    raise UsageError(f"no host {name!r}; {known}")


def add_host(host: Host) -> None:
    """Add a host, or change the one of its name.

    Raises:
        UsageError: The file is invalid.
        RunError: The file cannot be written.
    """
    _write({each.name: each for each in read_hosts()} | {host.name: host})
    with suppress(OSError):  # which whatever mirrors a run reports
        private_directory(host.directory / "runs")


def remove_host(name: str) -> None:
    """Forget a host, and what is mirrored of its runs; nothing changes there.

    Raises:
        UsageError: There is no host of this name, or the file is invalid.
        RunError: The file cannot be written, or the mirrored runs cannot be deleted.
    """
    host = find_host(name)
    _write({each.name: each for each in read_hosts() if each.name != name})
    deadline = time.monotonic() + _DELETE_SECONDS
    while host.directory.exists():
        try:
            shutil.rmtree(host.directory)
        except OSError as error:
            if time.monotonic() > deadline:
                raise RunError(f"cannot delete all of {host.directory}: {error}") from error
            time.sleep(0.1)  # what mirrors a run was about to write


def _write(hosts: Mapping[str, Host]) -> None:
    path = home() / FILE
    text = "\n".join(_table(host) for host in hosts.values())
    with file_errors(f"{path} cannot be written"):
        private_directory(path.parent)
        with replacing(path) as unfinished:
            unfinished.touch(mode=0o600)
            unfinished.write_text(text, "utf-8")


def _table(host: Host) -> str:
    values = ((key, getattr(host, key)) for key in ("ssh", "python", "home"))
    lines = [f"[{_quoted(host.name)}]", *(f"{key} = {_quoted(value)}" for key, value in values if value)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
