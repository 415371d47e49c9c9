"""Checks the run directory: permissions, disk space, SQLite and locks."""

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

from accel_engine.doctor.check import CheckFinding, failed, passed, warned
from accel_engine.doctor.check_inputs import Machine
from accel_engine.errors import RunError
from accel_engine.run.directory.lock import WriterLock, is_locked
from accel_engine.run.store.database import DATABASE, RunDatabase, create_file, reading
from accel_engine.versioned_database import WRITING, database_errors
from accel_engine.words import numbers

LOW_SPACE, NO_SPACE = 2 * 2**30, 100 * 2**20
"""Free bytes below which a few checkpoints fill the disk, or a run cannot be recorded."""

NETWORKED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "lustre", "beegfs", "afs", "ceph", "gpfs")
"""Network file systems."""

_UNSHARED_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=posix", "localflock"})
"""Mount options with which locks are local to a machine."""

_ELSEWHERE = "set ACCEL_TUI_HOME to a directory on a local disk"


def _nearest(path: Path) -> Path:
    """The nearest existing parent of a path, or the path itself."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def check_directory(machine: Machine) -> CheckFinding:
    """Check whether runs can be written, and only their owner can read them."""
    home = machine.home
    nearest = _nearest(home)
    if not nearest.is_dir():
        return failed(f"{nearest} is not a directory", f"runs are stored in {home}", _ELSEWHERE)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest):
            pass
    except OSError as error:
        return failed(f"cannot write to {home}", error.strerror or str(error), _writable(nearest))
    if nearest != home.absolute():
        return passed(f"{home} (created with the first run)")
    foreign = [path for path in (home, home / "runs") if path.exists() and path.stat().st_uid != os.geteuid()]
    if foreign:
        cause = "it belongs to another user, e.g. after a run with sudo"
        return warned(f"you do not own {foreign[0]}", cause, f'run sudo chown -R "$USER" {home}')
    runs = home / "runs"
    if runs.exists() and stat.S_IMODE(runs.stat().st_mode) & stat.S_IMODE(home.stat().st_mode) & 0o077:
        cause = "other users can read or change your runs"
        return warned(f"{runs} is accessible to other users", cause, f"run chmod 700 {runs}")
    return passed(str(home))


def _writable(nearest: Path) -> str:
    return f"get write access to {nearest}, or set ACCEL_TUI_HOME to a writable directory"


def check_space(machine: Machine) -> CheckFinding:
    """Check the free space for runs and checkpoints."""
    path = _nearest(machine.home)
    free = shutil.disk_usage(path).free
    summary = f"{numbers.size(free)} free"
    status = os.statvfs(path)
    if status.f_files and not status.f_favail:
        return failed("cannot create files", "the file system has no free inodes", f"delete files, or {_ELSEWHERE}")
    if free < NO_SPACE:
        return failed(summary, "too little to record a run", f"delete old runs in {machine.home}, or {_ELSEWHERE}")
    if free < LOW_SPACE:
        cause = "a few checkpoints of a large model may fill the disk"
        return warned(summary, cause, f"delete old runs in {machine.home}, or {_ELSEWHERE}")
    return passed(summary)


def check_database(machine: Machine) -> CheckFinding:
    """Check whether a run can be read while it is written: SQLite's write-ahead log works."""
    nearest = _nearest(machine.home)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest) as scratch:
            mode = _journal(Path(scratch) / DATABASE)
    except (OSError, RunError) as error:
        return failed(f"cannot create a database in {machine.home}", str(error), _ELSEWHERE)
    system = find_mount(nearest).kind
    if mode != "wal":
        cause = "the file system does not support SQLite's write-ahead log, so the engine and readers block each other"
        return warned(f"journal mode {mode} on {system or 'this disk'}", cause, _ELSEWHERE)
    if system in NETWORKED:
        cause = "on a network file system, only the machine that trains a run can watch it"
        return warned(f"write-ahead log on {system}", cause, f"watch runs on that machine, or {_ELSEWHERE}")
    return passed(f"write-ahead log works{f' on {system}' if system else ''}")


def check_run_lock(machine: Machine) -> CheckFinding:
    """Check whether locks keep a second process from writing a run, on this machine and on others."""
    nearest = _nearest(machine.home)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest) as scratch, WriterLock(Path(scratch)):
            is_seen = is_locked(Path(scratch))
    except (OSError, RunError) as error:
        return failed(f"cannot lock files in {machine.home}", str(error), _ELSEWHERE)
    if not is_seen:
        return failed("other processes do not see a lock", "two processes could write the same run", _ELSEWHERE)
    mount = find_mount(nearest)
    unshared = sorted(_UNSHARED_LOCKS & set(mount.options)) if mount.kind in NETWORKED else []
    if unshared:
        cause = f"{mount.kind} is mounted with {unshared[0]}, so other machines do not see which runs are live"
        fix = "continue and delete runs only on the machine that trained them"
        return warned("locks are local to this machine", cause, fix)
    return passed("a second process cannot write the same run")


def _journal(path: Path) -> str:
    """Write with one connection, read with another; return the journal mode."""
    with database_errors("no run", WRITING):
        create_file(path)
    with RunDatabase(path.parent) as writer, reading(path.parent) as reader:
        writer.add_event(0.0, "", "")
        reader.last_id("event")
        return writer.journal_mode()


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    kind: str = ""
    """Its type, e.g. ``ext4``; empty if unknown."""
    options: tuple[str, ...] = ()
    """Mount options, e.g. ``rw``."""


def find_mount(path: Path) -> Mount:
    """Find the file system of a directory."""
    mounts = {
        Path(part.mountpoint): Mount(part.fstype, tuple(part.opts.split(",")))
        for part in psutil.disk_partitions(all=True)
    }
    resolved = path.resolve()
    return next((mounts[parent] for parent in (resolved, *resolved.parents) if parent in mounts), Mount())
