"""Opens ``run.db``, and translates its errors for the user."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_from_bytes

from accel_engine.errors import DatabaseError, RunError
from accel_engine.json_values import JsonValueError
from accel_engine.run.directory.run_paths import repair_command
from accel_engine.run.store.database import Database
from accel_engine.run.store.table_connection import is_missing
from accel_engine.versioned_database import check_version

SCHEMA_VERSION = 4
"""The version of the format; see *Compatibility* in ``CONTRIBUTING.md``. Versions 1 to 3 were never released."""

DATABASE = "run.db"


_CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_TRIES = 5  # to copy files while they are being written


def connect(directory: Path, *, read_only: bool = False) -> Database:
    """Open a run's database.

    Raises:
        RunError: There is no run, it is damaged, or it has another version of the format.
    """
    path = directory / DATABASE
    if not path.is_file():
        raise RunError(f"no run in {directory}")
    database = None
    try:
        with explained(f"run {directory.name} cannot be read", (sqlite3.Error, OSError, JsonValueError), directory):
            database = _open_to_read(path) if read_only else _open(path)
            file = os.stat(path)
            database.directory, database.file = directory, (file.st_dev, file.st_ino)
            database.configure(read_only=read_only)
            version = database.schema()
            if not isinstance(version, int):
                raise JsonValueError("no format version")
        check_version(f"run {directory.name}", version, SCHEMA_VERSION)
    except RunError:
        if database:
            database.close()
        raise
    return database


def create_file(path: Path, **meta: object) -> None:
    """Create the database of a run, complete and closed, which only its owner can read.

    Args:
        path: Its file.
        meta: Rows of ``meta``.
    """
    path.touch(mode=0o600)
    with closing(_open(path)) as database:
        database.create(schema=SCHEMA_VERSION, **meta)


def initialize(path: Path) -> Database:
    """Create an empty database that only its owner can read, and open it."""
    create_file(path)
    database = _open(path)
    database.directory = path.parent
    return database


def is_current(database: Database) -> bool:
    """Whether an open database is still the one in its directory."""
    path = database.directory / DATABASE
    try:
        file = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # a network that does not answer, for example
        return True
    return (file.st_dev, file.st_ino) == database.file


@contextmanager
def explained(
    problem: str, errors: tuple[type[Exception], ...] = (sqlite3.Error,), run: Path | None = None
) -> Iterator[None]:
    """Raise errors as a :exc:`RunError` that says what could not be done.

    Args:
        problem: What could not be done.
        errors: The errors.
        run: A run's directory, to name the command that repairs it if its file is damaged.

    Raises:
        DatabaseError: SQLite cannot use the database, perhaps only now.
        RunError: Other errors.
    """
    try:
        yield
    except errors as error:
        kind = DatabaseError if isinstance(error, sqlite3.OperationalError) else RunError
        if run and _is_damage(error):
            raise kind(
                f"{problem}: its {DATABASE} is damaged ({error}). Save what is whole: {repair_command(run)}"
            ) from error
        raise kind(f"{problem}: {error}") from error


def _is_damage(error: Exception) -> bool:
    """Whether a file is no database of a run any more, or not all of one."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    corrupt = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return corrupt or is_missing(error) or isinstance(error, JsonValueError)


@contextmanager
def reading(directory: Path) -> Iterator[Database]:
    """Open a run's database for the queries of a block; see :func:`explained`.

    Raises:
        RunError: There is no run, or it cannot be read.
    """
    with (
        closing(connect(directory, read_only=True)) as database,
        explained(f"run {directory.name} cannot be read", run=directory),
    ):
        yield database
        check_unchanged(database)


def check_unchanged(database: Database) -> None:
    """Check that the file of a connection that sees no changes has not changed while it was read.

    Raises:
        DatabaseError: It has.
    """
    if database.is_outdated():
        raise DatabaseError(f"run {database.directory.name} was written while it was read: try again")


def check_writable(directory: Path, *others: Path) -> None:
    """Check that a run can be changed: SQLite creates files in its directory, too.

    Args:
        directory: The run's directory.
        others: What else is to be written.

    Raises:
        RunError: Its directory, its database, or one of the others cannot be written.
    """
    for path in (directory, directory / DATABASE, *others):
        if path.exists() and not os.access(path, os.W_OK):
            # On a disk that is mounted read-only, nobody can.
            why = "read-only disk" if os.statvfs(path).f_flag & os.ST_RDONLY else "permission denied"
            raise RunError(f"run {directory.name} cannot be changed: {path} cannot be written ({why})")


@contextmanager
def writing(directory: Path) -> Iterator[Database]:
    """Open a run's database for one transaction, in a process that is not the run's engine.

    Raises:
        RunError: There is no run, or it cannot be written.
    """
    try:
        with (
            closing(connect(directory)) as database,
            explained(f"cannot write the run {directory.name}"),
            database.transaction(),
        ):
            yield database
    except DatabaseError as error:  # of SQLite, which does not say which file it cannot create
        try:
            check_writable(directory)
        except RunError as reason:
            raise DatabaseError(str(reason)) from error
        raise


def _open(path: Path, options: str = "mode=rw") -> Database:
    # With its default mode, SQLite would create an empty file if the run is just being deleted.
    address = f"file:{quote_from_bytes(os.fsencode(path))}?{options}"
    return sqlite3.connect(
        address, timeout=5.0, isolation_level=None, check_same_thread=False, uri=True, factory=Database
    )


def _open_to_read(path: Path) -> Database:
    """Open a database to be read, also where nothing can be written: on a full disk, or another user's.

    SQLite shares the memory of readers and the writer of such a file in ``run.db-shm``, which it cannot create there.
    If a writer has created it, it can be used. Else nobody has the file open on this machine: without a log it is read
    as it is, and with one from a copy; the database says itself when it no longer is what the file is.

    Raises:
        sqlite3.Error, OSError: It cannot be opened.
    """
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK):
        database = _open(path)
        try:
            database.data_version()  # creates the file of the shared memory
        except sqlite3.OperationalError as error:
            database.close()
            if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE:
                raise
        else:
            return database
    return _open_unwritable(path)


def _open_unwritable(path: Path) -> Database:
    database = _open(path, "mode=ro")
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        database.close()
    else:
        return database
    stamp = _file_stamp(path)
    if not stamp[1]:
        database = _open(path, "mode=ro&immutable=1")
        database.watch(lambda: _file_stamp(path) != stamp)
        return database
    return _open_copy(path)


def _file_stamp(path: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What changes when a database or its log is written; the latter is empty without a log."""
    return _stamp(path), _stamp(path.with_name(f"{path.name}-wal"))


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else ()


def _open_copy(path: Path) -> Database:
    folder = TemporaryDirectory(prefix="accel-tui-")
    try:
        copy = Path(folder.name) / path.name
        for _ in range(_TRIES):
            stamp = _file_stamp(path)
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
            if _file_stamp(path) == stamp:
                break
        else:
            raise sqlite3.OperationalError("it is being written by another machine; try again")
        database = _open(copy)
    except BaseException:
        folder.cleanup()
        raise
    database.watch(lambda: _file_stamp(path) != stamp, folder.cleanup)
    return database
