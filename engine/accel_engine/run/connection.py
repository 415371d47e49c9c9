"""Opens ``run.db``, and translates its errors for the user."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote_from_bytes

from accel_engine.errors import DatabaseError, RunError
from accel_engine.run.database import Database

SCHEMA_VERSION = 2
"""Incremented whenever an older program would misread a newer file; version 1 does not know a run's lock."""

DATABASE = "run.db"

DAMAGE = (sqlite3.Error, KeyError, TypeError, ValueError)
"""Errors of SQLite, and of values that are missing or not in the form in which engines write them."""


def connect(directory: Path, *, read_only: bool = False) -> Database:
    """Open a run's database.

    Raises:
        RunError: There is no run, it is damaged, or a newer program created it.
    """
    path = directory / DATABASE
    if not path.is_file():
        raise RunError(f"no run in {directory}")
    database = None
    try:
        with explained(f"cannot read run {directory.name}", DAMAGE):
            database = _open(path)
            database.configure(read_only=read_only)
            version = database.meta().get("schema")
            if version is None:
                raise ValueError("no format version")
            is_newer = int(version) > SCHEMA_VERSION
        if is_newer:
            raise RunError(
                f"run {directory.name} was created by a newer accel-tui (format {version}; this version reads up to "
                f"{SCHEMA_VERSION}): upgrade accel-tui to open it"
            )
    except RunError:
        if database:
            database.close()
        raise
    return database


def initialize(path: Path) -> Database:
    """Create an empty database that only its owner can read."""
    path.touch(mode=0o600)
    database = _open(path)
    database.configure()
    database.create()
    database.set_meta(schema=SCHEMA_VERSION)
    return database


@contextmanager
def explained(problem: str, errors: tuple[type[Exception], ...] = (sqlite3.Error,)) -> Iterator[None]:
    """Raise errors as a :exc:`RunError` that says what could not be done.

    Args:
        problem: What could not be done.
        errors: The errors; :data:`DAMAGE` only where values of the database are decoded, as in any other code they
            would be errors of this program.

    Raises:
        DatabaseError: SQLite cannot use the database, perhaps only now.
        RunError: Other errors.
    """
    try:
        yield
    except errors as error:
        kind = DatabaseError if isinstance(error, sqlite3.OperationalError) else RunError
        raise kind(f"{problem}: {error}") from error


@contextmanager
def reading(directory: Path, errors: tuple[type[Exception], ...] = (sqlite3.Error,)) -> Iterator[Database]:
    """Open a run's database for the queries of a block; see :func:`explained`.

    Raises:
        RunError: There is no run, or it cannot be read.
    """
    with (
        closing(connect(directory, read_only=True)) as database,
        explained(f"run {directory.name} cannot be read", errors),
    ):
        yield database


@contextmanager
def writing(directory: Path) -> Iterator[Database]:
    """Open a run's database for one transaction, in a process that is not the run's engine.

    Raises:
        RunError: There is no run, or it cannot be written.
    """
    with (
        closing(connect(directory)) as database,
        explained(f"cannot write the run {directory.name}"),
        database.transaction(),
    ):
        yield database


def _open(path: Path) -> Database:
    # With its default mode, SQLite would create an empty file if the run is just being deleted.
    address = f"file:{quote_from_bytes(os.fsencode(path))}?mode=rw"
    database = sqlite3.connect(
        address, timeout=5.0, isolation_level=None, check_same_thread=False, uri=True, factory=Database
    )
    database.directory = path.parent
    return database
