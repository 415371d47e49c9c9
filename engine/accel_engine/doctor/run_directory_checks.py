"""The directory of the runs: whether it can be written, has room, and takes SQLite's databases and locks."""

import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from accel_engine.doctor.check import Check, Finding, failed, passed, warned
from accel_engine.doctor.machine import Machine
from accel_engine.errors import RunError
from accel_engine.run.lock import WriterLock, is_held
from accel_engine.run.schema import DATABASE, initialize

LITTLE, TOO_LITTLE = 2 * 2**30, 100 * 2**20
"""Bytes that are free, below which a few checkpoints fill the disk, or a run cannot be recorded."""

NETWORKED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "lustre", "beegfs", "afs", "ceph", "gpfs")
"""File systems that several machines can share."""

_UNSHARED_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=posix", "localflock"})
"""Options of a mount with which locks are of one machine only."""

_ELSEWHERE = "set ACCEL_TUI_HOME to a directory on a local disk"


def checks(machine: Machine) -> tuple[Check, ...]:
    """The checks of this subject."""
    return (
        Check("runs.directory", partial(directory, machine)),
        Check("runs.space", partial(space, machine)),
        Check("runs.database", partial(database, machine)),
        Check("runs.lock", partial(lock, machine)),
    )


def _nearest(place: Path) -> Path:
    """The directory itself, or the one that it would be made in."""
    place = place.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def directory(machine: Machine) -> Finding:
    """Whether runs can be written, and read by their owner only."""
    home = machine.home
    nearest = _nearest(home)
    if not nearest.is_dir():
        return failed(f"{nearest} is no directory", f"runs would be kept in {home}", _ELSEWHERE)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest):
            pass
    except OSError as error:
        return failed(f"{home} cannot be written", error.strerror or str(error), _writable(nearest))
    if nearest != home.absolute():
        return passed(f"{home} (made with the first run)")
    foreign = [path for path in (home, home / "runs") if path.exists() and path.stat().st_uid != os.geteuid()]
    if foreign:
        why = "it belongs to another user, as after a run under sudo"
        return warned(f"{foreign[0]} is not yours", why, f'sudo chown -R "$USER" {home}')
    runs = home / "runs"
    if runs.exists() and stat.S_IMODE(runs.stat().st_mode) & stat.S_IMODE(home.stat().st_mode) & 0o077:
        return warned(f"{runs} is open to others", "they can read or change your runs", f"chmod 700 {runs}")
    return passed(str(home))


def _writable(nearest: Path) -> str:
    return f"make {nearest} yours, or set ACCEL_TUI_HOME to a directory that you can write"


def space(machine: Machine) -> Finding:
    """Whether there is room for runs and their checkpoints."""
    place = _nearest(machine.home)
    free = shutil.disk_usage(place).free
    found = f"{free / 2**30:,.1f} GiB free"
    told = os.statvfs(place)
    if told.f_files and not told.f_favail:
        return failed("no file can be added", "the file system has no inodes left", f"remove files, or {_ELSEWHERE}")
    if free < TOO_LITTLE:
        return failed(found, "a run could not be recorded", f"remove old runs in {machine.home}, or {_ELSEWHERE}")
    if free < LITTLE:
        why = "a few checkpoints of a large model fill it"
        return warned(found, why, f"remove old runs in {machine.home}, or {_ELSEWHERE}")
    return passed(found)


def database(machine: Machine) -> Finding:
    """Whether a run can be read while it is written: SQLite's write-ahead log works."""
    nearest = _nearest(machine.home)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest) as scratch:
            mode = _journal(Path(scratch) / DATABASE)
    except (OSError, sqlite3.Error) as error:
        why = f"SQLite cannot keep a database there: {error}"
        return failed(f"no database in {machine.home}", why, _ELSEWHERE)
    system = mount(nearest).kind
    if mode != "wal":
        why = "the file system refuses SQLite's write-ahead log, so that readers and the engine wait for each other"
        return warned(f"journal mode {mode} on {system or 'this disk'}", why, _ELSEWHERE)
    if system in NETWORKED:
        why = "on a shared file system a run can be watched only from the machine that trains it"
        return warned(f"write-ahead log on {system}", why, f"watch it from there, or {_ELSEWHERE}")
    return passed(f"write-ahead log works{f' on {system}' if system else ''}")


def lock(machine: Machine) -> Finding:
    """Whether a run's one writer can be told from all others, on this machine and on those that share the directory."""
    nearest = _nearest(machine.home)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest) as scratch, WriterLock(Path(scratch)):
            seen = is_held(Path(scratch))
    except (OSError, RunError) as error:
        return failed(f"no locks in {machine.home}", str(error), _ELSEWHERE)
    if not seen:
        return failed("a lock is not seen by others", "two processes could write the same run", _ELSEWHERE)
    found = mount(nearest)
    unshared = sorted(_UNSHARED_LOCKS & set(found.options)) if found.kind in NETWORKED else []
    if unshared:
        why = f"{found.kind} is mounted with {unshared[0]}: other machines that share it do not see which runs are live"
        return warned(
            "locks are local to this machine", why, "continue and delete runs on the machine that trained them"
        )
    return passed("a second process cannot write the same run")


def _journal(path: Path) -> str:
    """Write with one connection, read with another; tell the journal's mode."""
    with closing(initialize(path)) as writer, closing(sqlite3.connect(path)) as reader:
        writer.execute("INSERT INTO event (time, kind, body) VALUES (0, '', '')")
        reader.execute("SELECT count(*) FROM event").fetchone()
        return str(writer.execute("PRAGMA journal_mode").fetchone()[0])


@dataclass(frozen=True, slots=True)
class Mount:
    """How a file system is mounted.

    Attributes:
        kind: As in ``ext4``; empty where the system does not say.
        options: As in ``rw``.
    """

    kind: str = ""
    options: tuple[str, ...] = ()


def mount(place: Path) -> Mount:
    """The file system that a directory is on."""
    mounts = {
        Path(part.mountpoint): Mount(part.fstype, tuple(part.opts.split(",")))
        for part in psutil.disk_partitions(all=True)
    }
    resolved = place.resolve()
    return next((mounts[parent] for parent in (resolved, *resolved.parents) if parent in mounts), Mount())
