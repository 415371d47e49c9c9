"""The queue's database, ``queue.db`` in the program's directory."""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from accel_engine.errors import RunError
from accel_engine.run.run_paths import home, make_private
from accel_engine.run_queue.request import QueueRequest, StoredEntry
from accel_engine.stored_values import parse, parse_object

DATABASE = "queue.db"
"""File in the program's directory with the runs that wait."""

SCHEMA_VERSION = 1
"""Incremented whenever an older program would misread a newer file."""

LOCK_TIMEOUT_SECONDS = 10.0
"""How long to wait for other processes that change the queue, each for some milliseconds."""

AT_ONCE = "at_once"
"""The row of ``meta`` with the most runs at once that a user has set."""

DEFAULT_AT_ONCE = "default_at_once"
"""The row of ``meta`` with the most runs at once of the user's settings."""

TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    """
CREATE TABLE IF NOT EXISTS entry (
    run TEXT PRIMARY KEY,
    directory TEXT NOT NULL,
    place INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    after TEXT NOT NULL,
    wanted_devices INTEGER,
    group_name TEXT NOT NULL,
    at_once INTEGER NOT NULL,
    state TEXT NOT NULL,
    held TEXT NOT NULL,
    reason TEXT NOT NULL,
    devices TEXT NOT NULL,
    environment TEXT NOT NULL,
    folder TEXT NOT NULL,
    added REAL NOT NULL
)
""",
    f"INSERT OR IGNORE INTO meta VALUES ('schema', {SCHEMA_VERSION})",
)


def database_path() -> Path:
    """The file, which may not exist yet."""
    return home() / DATABASE


class QueueDatabase:
    """The open queue; its methods may be called from one thread at a time.

    Raises:
        RunError: It cannot be opened or created, or a newer program created it. All methods raise it, too.
    """

    def __init__(self) -> None:
        path = database_path()
        make_private(path.parent)
        with _explained(path):
            path.touch(mode=0o600)
            self._database = sqlite3.connect(
                path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._initialize()
                found = int(self.meta("schema"))
            except BaseException:
                self._database.close()
                raise
        if found > SCHEMA_VERSION:
            self.close()
            raise RunError(f"the queue {path} was created by a newer accel-tui: upgrade it")

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @property
    def data_version(self) -> int:
        """A number that changes when another process has changed the queue."""
        with _explained(database_path()):
            return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    @property
    def at_once(self) -> int | None:
        """Most runs at once; ``None`` for as many as there are accelerators, or one on the CPU."""
        found = self.meta(AT_ONCE) or self.meta(DEFAULT_AT_ONCE)
        return None if found is None else int(found)

    @contextmanager
    def transaction(self) -> Iterator["QueueDatabase"]:
        """Let no other process change the queue during a block, which is undone if it raises."""
        with _explained(database_path()):
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self
        except BaseException:
            self._database.rollback()
            raise
        with _explained(database_path()):
            self._database.commit()

    def entries(self) -> list[StoredEntry]:
        """All entries, in the order in which they start."""
        with _explained(database_path()):
            rows = self._database.execute("SELECT * FROM entry").fetchall()
            return sorted(map(_entry, rows), key=lambda entry: entry.order)

    def started(self) -> list[Path]:
        """The directories of runs that were started, as far as is noted."""
        with _explained(database_path()):
            rows = self._database.execute("SELECT directory FROM entry WHERE state = 'started' ORDER BY run").fetchall()
            return [Path(directory) for (directory,) in rows]

    def last_place(self) -> int:
        """The largest number that orders entries; 0 without entries."""
        with _explained(database_path()):
            return int(self._database.execute("SELECT COALESCE(MAX(place), 0) FROM entry").fetchone()[0])

    def find(self, run: str) -> StoredEntry | None:
        """The entry of a run; ``None`` if there is none."""
        with _explained(database_path()):
            row = self._database.execute("SELECT * FROM entry WHERE run = ?", (run,)).fetchone()
            return _entry(row) if row else None

    def put(self, entry: StoredEntry) -> None:
        """Add or replace an entry."""
        request = entry.request
        values = (
            entry.run,
            str(entry.directory),
            entry.place,
            request.priority,
            json.dumps(request.after),
            request.devices,
            request.group,
            request.at_once,
            entry.state,
            entry.held,
            entry.reason,
            json.dumps(entry.devices),
            json.dumps(dict(entry.environment)),
            entry.folder,
            entry.added,
        )
        with _explained(database_path()):
            self._database.execute(f"INSERT OR REPLACE INTO entry VALUES ({', '.join('?' * len(values))})", values)

    def remove(self, *runs: str) -> None:
        """Remove the entries of runs."""
        with _explained(database_path()):
            self._database.executemany("DELETE FROM entry WHERE run = ?", [(run,) for run in runs])

    def set_reasons(self, reasons: Mapping[str, str]) -> None:
        """Note why entries wait."""
        with _explained(database_path()):
            rows = [(reason, run) for run, reason in reasons.items()]
            self._database.executemany("UPDATE entry SET reason = ? WHERE run = ?", rows)

    def meta(self, key: str) -> Any:
        """A value that is stored by name; ``None`` if there is none."""
        with _explained(database_path()):
            row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return row[0] if row else None

    def set_meta(self, key: str, value: int | None) -> None:
        """Store a value by name."""
        with _explained(database_path()):
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _initialize(self) -> None:
        self._database.execute("PRAGMA synchronous = FULL")  # a run that was queued is there after a power failure
        if self._database.execute("PRAGMA user_version").fetchone()[0]:
            return
        self._database.execute("PRAGMA journal_mode = WAL")  # or another one, where the file system refuses it
        with self.transaction():
            for statement in TABLES:
                self._database.execute(statement)
            self._database.execute("PRAGMA user_version = 1")


@contextmanager
def open_queue() -> Iterator[QueueDatabase]:
    """Open the queue for a block; create it if there is none."""
    with closing(QueueDatabase()) as database:
        yield database


@contextmanager
def changing_queue() -> Iterator[QueueDatabase]:
    """Open the queue for one transaction."""
    with open_queue() as database, database.transaction():
        yield database


def read_entries() -> list[StoredEntry]:
    """All entries, in the order in which they start; none if there is no queue yet, which this does not create."""
    if not database_path().is_file():
        return []
    with open_queue() as database:
        return database.entries()


def _entry(row: Any) -> StoredEntry:
    run, directory, place, priority, after, wanted, group, at_once, state, held, reason, devices, variables, *rest = row
    return StoredEntry(
        run,
        Path(directory),
        QueueRequest(priority, tuple(map(str, parse(after))), wanted, group, at_once),
        place,
        state,
        held,
        reason,
        tuple(map(str, parse(devices))),
        {name: str(value) for name, value in parse_object(variables).items()},
        *rest,
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise errors of SQLite, and damaged values, as errors for users."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise RunError(f"the queue {path} cannot be used: {error}") from error
        raise RunError(
            f"the queue {path} is damaged ({error}): delete it and add the runs again, each with "
            "accel-tui queue release RUN"
        ) from error
    except OSError as error:
        raise RunError(f"the queue {path} cannot be used: {os.strerror(error.errno or 0)}") from error
    except (TypeError, ValueError) as error:
        raise RunError(f"the queue {path} is damaged: {error}") from error
