"""Deletes runs, except live ones."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import DatabaseError, RunError
from accel_engine.run.directory.disk_problem import disk_problem
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import CHECKPOINTS, MODEL, WORKERS, host_function, host_of_run
from accel_engine.run.engine.ownership import check_not_written_elsewhere
from accel_engine.run.engine.status import read_info
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.store.database import DATABASE, RunDatabase, check_writable, reading, writing

_TRIES = 10  # to remove a directory to which another process adds files


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a run's directory."""

    size: int = 0
    """Bytes of all its files."""
    checkpoints: int = 0
    """Number of checkpoints."""
    model: bool = False
    """Whether it has a trained model."""
    workers: int = 0
    """Number of other workers' runs in it."""


def count_contents(directory: Path) -> Contents:
    """Find what deleting a run would delete; linked workers' runs are not counted.

    Raises:
        RunError: The run, or a worker's run in it, is live or cannot be read, or the run cannot be deleted.
    """
    if host_of_run(directory):
        return host_function("mirrored_runs:count_contents")(directory)
    check_writable(directory, directory.parent)
    for each in _runs_within(directory):
        with reading(each) as database:
            _refuse_live(database)
    try:
        return Contents(
            sum(_size(entry) for entry in _files(directory)),
            len(list((directory / CHECKPOINTS).glob("step-*.index"))),
            (directory / MODEL).exists(),
            len(list(_runs_within(directory))) - 1,
        )
    except OSError as error:
        raise RunError(f"cannot read the directory of run {directory}: {error}") from error


def remove(directory: Path) -> None:
    """Delete a run's directory; a mirrored run is deleted on its host.

    The database is deleted last, so that a partly deleted run is still listed.

    Raises:
        RunError: As raised by :func:`count_contents`, another machine writes it, or a file cannot be deleted.
    """
    if host_of_run(directory):
        host_function("mirrored_runs:remove")(directory)
        return
    count_contents(directory)
    check_not_written_elsewhere(*_runs_within(directory))
    try:
        with _without_engines(directory):
            for entry in list(os.scandir(directory)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif not entry.name.startswith(DATABASE):
                    os.unlink(entry.path)
        _remove_directory(directory)
    except OSError as error:
        raise RunError(f"cannot delete all of the run {directory}: {error}") from error


@contextmanager
def _without_engines(directory: Path) -> Iterator[None]:
    """Keep engines from starting a run: by a write transaction; by its lock where the disk has no room for one."""
    with ExitStack() as stack:
        try:
            database = stack.enter_context(writing(directory))
        except DatabaseError as error:
            if not disk_problem(error, directory):
                raise
            stack.enter_context(WriterLock(directory))
        else:
            _refuse_live(database)
        yield


def _remove_directory(directory: Path) -> None:
    """Remove the rest of a run; a process that reads its database may recreate or delete SQLite's files meanwhile."""
    for _ in range(_TRIES - 1):
        try:
            return shutil.rmtree(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
    return shutil.rmtree(directory)


def _runs_within(directory: Path) -> Iterator[Path]:
    """The run, and the runs of other workers in its directory."""
    yield directory
    for part in worker_runs_of(directory).values():
        if not part.is_symlink() and (part / DATABASE).is_file():
            yield part


def _refuse_live(database: RunDatabase) -> None:
    directory = database.directory
    try:
        status = read_info(database).status
    except RunError as error:
        raise RunError(
            f"run {directory.name} is damaged, so it may still be training ({error}); "
            f"if it is not, delete {directory} yourself"
        ) from error
    if status.live:
        name = directory.name
        if directory.parent.name == WORKERS:
            name = f"worker {directory.name} of run {directory.parent.parent.name}"
        raise RunError(f"{name} is {status}: stop it before deleting it")


def _size(entry: os.DirEntry[str]) -> int:
    with suppress(FileNotFoundError):  # the last reader deletes SQLite's own files
        return entry.stat(follow_symlinks=False).st_size
    return 0


def _files(directory: Path) -> Iterator[os.DirEntry[str]]:
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        else:
            yield entry
