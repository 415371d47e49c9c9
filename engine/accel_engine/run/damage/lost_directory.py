"""Notices that a run was deleted, moved, replaced or overwritten while it is open, and saves it elsewhere.

A deleted file can be read and written as long as a process has it open. So a writer can copy all that it has recorded,
also from a directory that is gone.
"""

import ctypes
import itertools
import os
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_from_bytes

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import EpochEnded, Outcome, RunEnded, RunStarted, to_stored
from accel_engine.files import replacing
from accel_engine.run.directory.log_file import note_in_log
from accel_engine.run.directory.run_paths import LOCK, WORKERS, reference, runs_directory
from accel_engine.run.store.connection import DATABASE, connect, initialize
from accel_engine.run.store.database import Database
from accel_engine.run.store.meta import read_meta
from accel_engine.run.store.stored_events import last_event

SAVED = "-saved"
"""What is added to the id of a run that is saved elsewhere."""

SAVED_AS = "what was recorded is saved: accel-tui watch"
"""Followed by the run that was saved."""


_UNTOLD = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,  # as on a full disk, which takes only a part of the log that SQLite copies into the file
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
)
"""Primary result codes that do not tell whose contents a file has."""

_TRIES, _TRY_SECONDS = 10, 0.02
"""How often a file must be found overwritten: another process may just be copying its log into it."""


def has_same_heartbeat(database: Database) -> bool:
    """Whether the file in the directory is the open one after all: some file systems change the numbers of files."""
    with suppress(RunError, sqlite3.Error), closing(connect(database.directory, read_only=True)) as other:
        open_one, found = read_meta(database), read_meta(other)
        return all(open_one.get(key) == found.get(key) for key in ("process", "heartbeat"))
    return False


def find_another_directory(database: Database, lock: Path | None, *, overwritten: bool) -> tuple[str, Database]:
    """Find another directory for an open database that is no longer in its directory.

    Where the system tells to which directory it was moved, that is it. Else it is saved in a new one, and its run ends
    in the file that was deleted: for whoever still has that open.

    Args:
        database: The database.
        lock: Where the run's lock is now.
        overwritten: Whether its file is in place, but another program wrote into it: it is abandoned then, see
            :func:`abandon`.

    Returns:
        What happened, and the database to write from now on.

    Raises:
        RunError: It can be saved nowhere.
    """
    if not overwritten and (moved := _find_moved(database, lock)):
        happened = f"its directory {database.directory} was moved to {moved}"
        database.directory = moved
        return happened, database
    happened = _how_lost(database.directory, overwritten=overwritten)
    try:
        saved = _save(database, overwritten=overwritten)
    except RunError as error:
        if overwritten:
            abandon(database)
            raise RunError(f"run {database.directory.name}: {happened}; {error}") from error
        with suppress(sqlite3.Error):
            _write_end(database, happened, str(error))
        raise RunError(f"run {database.directory.name}: {happened}; {error}") from error
    hint = f"{SAVED_AS} {reference(saved.directory)}"
    if overwritten:
        abandon(database)
        note_in_log(database.directory, f"run {database.directory.name}: {happened}; {hint}")
        return happened, saved
    with suppress(sqlite3.Error):  # SQLite does not write a deleted file that has no WAL
        _write_end(database, happened, hint)
    return happened, saved


def recorded_on(directory: Path) -> str:
    """What becomes of a script's run that has another directory now, as a clause."""
    return f"the script continues, and is recorded as run {reference(directory)}"


def _find_moved(database: Database, lock: Path | None) -> Path | None:
    if lock is None or lock.name != LOCK:
        return None
    with suppress(OSError):
        file = os.stat(lock.parent / DATABASE)
        if (file.st_dev, file.st_ino) == database.file:
            return lock.parent
    return None


def _how_lost(directory: Path, *, overwritten: bool) -> str:
    if overwritten:
        return f"its file {directory / DATABASE} was overwritten by another program"
    if (directory / DATABASE).exists():
        return f"its file {directory / DATABASE} was replaced by another"
    if directory.is_dir():
        return f"its file {directory / DATABASE} was deleted"
    return f"its directory {directory} was deleted"


def _save(database: Database, *, overwritten: bool) -> Database:
    """Copy a database to a new directory: of the directory of runs, or a temporary one."""
    problem: Exception | None = None
    for make in (_make_beside_runs, _make_temporary):
        directory: Path | None = None
        try:
            directory = make(database.directory)
            with replacing(directory / DATABASE) as unfinished:
                if overwritten:
                    save_own_pages(database, unfinished)
                else:
                    with closing(initialize(unfinished)) as copy:
                        database.backup(copy)
            return connect(directory)
        except (OSError, RunError, sqlite3.Error) as error:
            problem = problem or error
            with suppress(OSError):
                if directory:
                    directory.rmdir()  # it is empty, and no command would ever name it
    raise RunError(f"what was recorded could not be saved: {problem}") from problem


def _make_beside_runs(directory: Path) -> Path:
    """Make a directory named after a run; that of a worker's run in the one of the chief's."""
    run = directory.parent.parent if directory.parent.name == WORKERS else directory
    if not runs_directory().is_dir():  # deleted, too
        raise FileNotFoundError(f"there is no directory {runs_directory()}")
    for number in itertools.count(1):
        saved = runs_directory() / f"{run.name}{SAVED}{number if number > 1 else ''}"
        place = saved / directory.relative_to(run)
        if not (place / DATABASE).exists():
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            return place
    raise AssertionError


def _make_temporary(directory: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix="accel-tui-")) / directory.name
    place.mkdir(mode=0o700)
    return place


def _write_end(database: Database, reason: str, hint: str) -> None:
    started, epoch = last_event(database, RunStarted), last_event(database, EpochEnded)
    now = clock.now()
    ended = RunEnded(
        time=now,
        outcome=Outcome.FAILED,
        steps=database.chunk_from_end()[1],
        epochs=epoch.epoch if epoch else 0,
        seconds=now - started.time if started else 0.0,
        reason=reason,
        hint=hint,
    )
    database.add_event(now, ended.kind(), to_stored(ended))


class OverwriteCheck:
    """Checks whether a file still belongs to the same run and process, or ``cp other.db run.db`` wrote over it.

    The file keeps its number, and SQLite notices nothing: what it has in memory and in its log hides some of the new
    contents.

    Args:
        process: The process that writes it, as it is in ``meta``.
    """

    def __init__(self, process: str) -> None:
        self._process = process
        self._own: dict[str, object] = {}

    def is_overwritten(self, database: Database) -> bool:
        """Whether a file was overwritten."""
        path = database.directory / DATABASE
        if not self._own:
            with suppress(sqlite3.Error):  # until then, the process may be in the log only
                database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            found = _identity(path)
            self._own = found if found and found.get("process") == self._process else {}
            return False
        for _ in range(_TRIES):
            found = _identity(path)
            if found in (None, self._own) or self._is_taken_over(found, database):
                return False
            time.sleep(_TRY_SECONDS)
        return True

    def _is_taken_over(self, found: dict[str, object] | None, database: Database) -> bool:
        """Whether another process writes the same run by way of SQLite, so that the connection sees it, too."""
        if not found or found.get("created") != self._own.get("created"):
            return False
        return bool(read_meta(database).get("process") == found.get("process"))


def _identity(path: Path) -> dict[str, object] | None:
    """What tells runs and processes apart in a file without its log; empty if it is no run's, ``None`` if untold."""
    # Not with open(): closing any descriptor of a file releases the locks that SQLite has on it.
    address = f"file:{quote_from_bytes(os.fsencode(path))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as file:
            return dict(file.execute("SELECT key, value FROM meta WHERE key IN ('created', 'process')"))
    except sqlite3.Error as error:
        return None if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNTOLD else {}


def save_own_pages(database: Database, path: Path) -> None:
    """Save the rows that are in the log or the memory of a connection to a file that was overwritten.

    Raises:
        OSError, RunError, sqlite3.Error: They cannot be saved.
    """
    from accel_engine.run.damage.repaired_rows import copy_whole_rows  # NumPy is slow to import

    with TemporaryDirectory(prefix=".own-", dir=path.parent) as folder:
        copy = Path(folder) / DATABASE
        with closing(initialize(copy)) as pages:
            database.backup(pages)
            (size,) = pages.execute("PRAGMA page_size").fetchone()
        _blank_foreign_pages(copy, database.directory / DATABASE, size)
        with closing(initialize(path)) as rows:
            copy_whole_rows(Path(folder), rows, database.directory.name)


def _blank_foreign_pages(copy: Path, overwritten: Path, size: int) -> None:
    """Blank the pages that may have been read from the overwritten file: those that are the same there."""
    with copy.open("r+b") as ours, overwritten.open("rb") as theirs:
        theirs.seek(size)  # the connection has the first page, with the tables, in memory
        for place in range(size, copy.stat().st_size, size):
            ours.seek(place)
            if ours.read(size) == theirs.read(size).ljust(size, b"\0"):
                ours.seek(place)
                ours.write(bytes(size))


def abandon(database: Database) -> None:
    """Leave a connection open until the process ends: closing it would write its log over the new contents."""
    database.is_abandoned = True
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
    for suffix in ("-wal", "-shm"):  # whoever opens the new contents must not read them with this log
        with suppress(OSError):
            (database.directory / f"{DATABASE}{suffix}").unlink()
