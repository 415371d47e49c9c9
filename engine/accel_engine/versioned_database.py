"""A SQLite file of the program that has the version of its format; its errors are in words for users."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

from accel_engine.errors import RunError

META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID"
"""The table of values by name. One of them is ``schema``, the version of the format."""

WRITING = "cannot be written"
"""The problem of methods that write, in messages."""

LOCK_TIMEOUT_SECONDS = 10.0
"""How long to wait for other processes that write the file, each for some milliseconds."""


def check_version(title: str, version: int, known: int) -> None:
    """Check that a file has the format that this program reads and writes.

    Args:
        title: What it is, in messages.
        version: The version of its format.
        known: The version that this program knows.

    Raises:
        RunError: It has another one; the message says what to do.
    """
    if version > known:
        raise RunError(
            f"{title} was created by a newer accel-tui (format {version}; this version reads up to {known}): upgrade "
            "accel-tui to open it"
        )
    if version < known:
        raise RunError(
            f"{title} was created by an older accel-tui (format {version}; this version reads {known}): open it with "
            "the version that created it"
        )


class VersionedDatabase:
    """An open file; its methods may be called from one thread at a time.

    Args:
        path: The file.
        title: What it is, in messages.
        version: The version of the format that this program reads and writes.
        synchronous: SQLite's setting: with ``FULL``, what was written is there after a power failure.
        cure: What to do if it is damaged, in messages; empty if nothing helps.

    Raises:
        RunError: It cannot be opened, or has another version of the format. All methods raise it, too.
    """

    def __init__(self, path: Path, title: str, version: int, *, synchronous: str, cure: str = "") -> None:
        self._title, self._cure = title, cure
        with self._explained("cannot be opened"):
            self._database = sqlite3.connect(
                path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._database.execute(f"PRAGMA synchronous = {synchronous}")
                self._initialize()
                if (schema := self.meta("schema")) is None:
                    raise ValueError("it has no version of its format")
                check_version(title, int(schema), version)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Let no other process change the file during a block, which is undone if it raises."""
        with self._explained(WRITING):
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self
        except BaseException:
            self._database.rollback()
            raise
        with self._explained(WRITING):
            self._database.commit()

    def meta(self, key: str) -> Any:
        """A value that is stored by name; ``None`` if there is none."""
        with self._explained():
            row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return row[0] if row else None

    def set_meta(self, key: str, value: object) -> None:
        """Store a value by name."""
        with self._explained(WRITING):
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _initialize(self) -> None:
        """Called when the file is open, to create its tables."""

    def _explained(self, problem: str = "cannot be read") -> AbstractContextManager[None]:
        return database_errors(self._title, problem, self._cure)


@contextmanager
def database_errors(title: str, problem: str, cure: str = "") -> Iterator[None]:
    """Raise errors of SQLite and of the system, and of damaged values, as errors for users.

    Args:
        title: What it is.
        problem: What cannot be done with it.
        cure: What to do if it is damaged; empty if nothing helps.

    Raises:
        RunError: Says what cannot be done, or that the file is damaged.
    """
    try:
        yield
    except (sqlite3.Error, OSError, TypeError, ValueError) as error:
        if not isinstance(error, (sqlite3.OperationalError, sqlite3.ProgrammingError, OSError)):
            raise RunError(f"{title} is damaged ({error}){cure and f': {cure}'}") from error
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise RunError(f"{title} {problem}: {reason}") from error
