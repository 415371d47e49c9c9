"""Deleting runs, never one that an engine works on."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.ownership import refuse_written_elsewhere
from accel_engine.run.paths import CHECKPOINTS, MODEL, WORKERS
from accel_engine.run.schema import DATABASE, connect, transaction
from accel_engine.run.status import read_info
from accel_engine.run.worker_runs import worker_runs_of

_TRIES = 10  # of removing a directory that somebody adds files to


@dataclass(frozen=True, slots=True)
class Contents:
    """What goes with a run.

    Attributes:
        size: Bytes of all its files.
        checkpoints: How many checkpoints it has.
        model: Whether it has a trained model.
        workers: How many other workers' parts are within it.
    """

    size: int = 0
    checkpoints: int = 0
    model: bool = False
    workers: int = 0


def contents(directory: Path) -> Contents:
    """Look what deleting a run would take away; what is only linked into it is not counted.

    Raises:
        RunError: An engine works on it, or on a part of it, or whether one does, or what there is, cannot be read.
    """
    for each in _runs_within(directory):
        with closing(connect(each, read_only=True)) as connection:
            _refuse_live(connection, each)
    try:
        return Contents(
            sum(_size(entry) for entry in _files(directory)),
            len(list((directory / CHECKPOINTS).glob("step-*.index"))),
            (directory / MODEL).exists(),
            len(list(_runs_within(directory))) - 1,
        )
    except OSError as error:
        raise RunError(f"cannot look what is in the run {directory}: {error}") from error


def remove(directory: Path) -> None:
    """Delete a run and all that is in its directory.

    The database goes last, so that a run of which something could not be deleted is still listed.

    Raises:
        RunError: As by :func:`contents`, or something cannot be deleted.
    """
    contents(directory)
    refuse_written_elsewhere(*_runs_within(directory))
    try:
        # Nobody can take the run up meanwhile: for that it would have to be written.
        with closing(connect(directory)) as connection, transaction(connection):
            _refuse_live(connection, directory)
            for entry in list(os.scandir(directory)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif not entry.name.startswith(DATABASE):
                    os.unlink(entry.path)
        _remove_directory(directory)
    except (OSError, sqlite3.Error) as error:
        raise RunError(f"cannot delete all of the run {directory}: {error}") from error


def _remove_directory(directory: Path) -> None:
    """Remove what is left of a run; who reads its database at this moment may add SQLite's own files once more."""
    for _ in range(_TRIES - 1):
        try:
            return shutil.rmtree(directory)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    return shutil.rmtree(directory)


def _runs_within(directory: Path) -> Iterator[Path]:
    """The run, and those of its other workers that are in its own directory."""
    yield directory
    for part in worker_runs_of(directory).values():
        if not part.is_symlink() and (part / DATABASE).is_file():
            yield part


def _refuse_live(connection: sqlite3.Connection, directory: Path) -> None:
    try:
        status = read_info(connection, directory).status
    except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"run {directory.name} is damaged, so that nobody knows whether it is being trained ({error}); "
            f"if it is not, delete {directory} yourself"
        ) from error
    if status.live:
        where = f"a part of run {directory.parent.parent.name}" if directory.parent.name == WORKERS else directory.name
        raise RunError(f"{where} is {status}: stop it first, then delete it")


def _size(entry: os.DirEntry[str]) -> int:
    with suppress(FileNotFoundError):  # SQLite's own files go with the last reader
        return entry.stat(follow_symlinks=False).st_size
    return 0


def _files(directory: Path) -> Iterator[os.DirEntry[str]]:
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        else:
            yield entry
