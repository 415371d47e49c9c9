"""Brings a run of a host here, with all of its files."""

import sqlite3
from contextlib import closing
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from accel_engine.errors import RunError
from accel_engine.files import private_directory
from accel_engine.hosts.asked_requests import fetch_file
from accel_engine.hosts.host_requests import FilePartRequest, RunFilesRequest
from accel_engine.hosts.link import link_to
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import host_of, run_name, runs_directory
from accel_engine.run.store.database import DATABASE, RunDatabase
from accel_engine.run.store.meta import HOST_STATE, HOST_SUMMARY
from accel_engine.versioned_database import READING, connect, database_errors


def fetch_run(directory: Path) -> Path:
    """Make a mirrored run one of this machine, and return its directory.

    Raises:
        RunError: It still trains, is here already, or cannot be read or written.
    """
    target = runs_directory() / directory.name
    if target.exists():
        raise RunError(f"run {directory.name} is here already: {target}")
    with closing(RunReader(directory)) as reader:
        info = reader.info()
        if info.status.live:
            raise RunError(f"run {info.id} is {info.status}: bring it when it has ended, or only its files, with --to")
        private_directory(target.parent)
        with TemporaryDirectory(prefix=".fetch-", dir=target.parent) as hidden:
            unfinished = Path(hidden, directory.name)
            private_directory(unfinished)
            _copy_database(directory, unfinished)
            fetch_files(directory, unfinished)
            unfinished.rename(target)
    return target


def _copy_database(directory: Path, to: Path) -> None:
    """Copy the database of a mirror, which has all of the run, without what only a mirror has."""
    with (
        database_errors(f"run {directory.name}", READING),
        closing(connect(directory / DATABASE)) as source,
        closing(sqlite3.connect(to / DATABASE)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = WAL").fetchone()
    (to / DATABASE).chmod(0o600)
    with RunDatabase(to) as database:
        database.execute("DELETE FROM command")
        database.set_meta(**{HOST_STATE: None, HOST_SUMMARY: None})


def fetch_files(directory: Path, folder: Path) -> tuple[int, int]:
    """Bring the files of a mirrored run but its database into a folder; returns their number and bytes.

    Raises:
        RunError: The host cannot be reached, or a file cannot be read or written.
    """
    link = link_to(host_of(directory))
    files = link.ask(RunFilesRequest(directory.name)).files
    size = 0
    for file in files:
        relative = PurePosixPath(file.path)
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise RunError(f"{run_name(directory)} has a file with the invalid name {file.path!r}")
        size += fetch_file(link, FilePartRequest(file.path, 0, directory.name), folder / relative)
    return len(files), size
