"""The queue's database, ``queue.db`` in the program's directory, and the process that starts the runs in it."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from accel_engine.json_values import decode, encode
from accel_engine.process.detached import leave, start_detached
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import home, make_private
from accel_engine.run_queue.queue_entries import QueueRequest, StoredEntry
from accel_engine.versioned_database import META, WRITING, VersionedDatabase, database_errors

DATABASE = "queue.db"
"""File in the program's directory with the runs that wait."""

SCHEMA_VERSION = 1
"""The version of the format; see *Compatibility* in ``CONTRIBUTING.md``."""

CURE = "delete it and add the runs again, each with accel-tui queue release RUN"
"""What to do with a damaged queue."""

AT_ONCE = "at_once"
"""The row of ``meta`` with the most runs at once that a user has set."""

DEFAULT_AT_ONCE = "default_at_once"
"""The row of ``meta`` with the most runs at once of the user's settings."""

TABLES = (
    META,
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


class QueueDatabase(VersionedDatabase):
    """The open queue; its methods may be called from one thread at a time.

    Raises:
        RunError: It cannot be opened or created, or has another format. All methods raise it, too.
    """

    def __init__(self) -> None:
        path = database_path()
        make_private(path.parent)
        title = f"the queue {path}"
        with database_errors(title, WRITING):
            path.touch(mode=0o600)
        # A run that was queued is there after a power failure.
        super().__init__(path, title, SCHEMA_VERSION, synchronous="FULL", cure=CURE)

    @property
    def data_version(self) -> int:
        """A number that changes when another process has changed the queue."""
        with self._explained():
            return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    @property
    def at_once(self) -> int | None:
        """Most runs at once; ``None`` for as many as there are accelerators, or one on the CPU."""
        found = self.meta(AT_ONCE) or self.meta(DEFAULT_AT_ONCE)
        return None if found is None else int(found)

    def entries(self) -> list[StoredEntry]:
        """All entries, in the order in which they start."""
        with self._explained():
            rows = self._database.execute("SELECT * FROM entry").fetchall()
            return sorted(map(_entry, rows), key=lambda entry: entry.order)

    def started(self) -> list[Path]:
        """The directories of runs that were started, as far as is noted."""
        with self._explained():
            rows = self._database.execute("SELECT directory FROM entry WHERE state = 'started' ORDER BY run").fetchall()
            return [Path(directory) for (directory,) in rows]

    def last_place(self) -> int:
        """The largest number that orders entries; 0 without entries."""
        with self._explained():
            return int(self._database.execute("SELECT COALESCE(MAX(place), 0) FROM entry").fetchone()[0])

    def find(self, run: str) -> StoredEntry | None:
        """The entry of a run; ``None`` if there is none."""
        with self._explained():
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
            encode(request.after),
            request.devices,
            request.group,
            request.at_once,
            entry.state,
            entry.held,
            entry.reason,
            encode(entry.devices),
            encode(entry.environment),
            entry.folder,
            entry.added,
        )
        with self._explained(WRITING):
            self._database.execute(f"INSERT OR REPLACE INTO entry VALUES ({', '.join('?' * len(values))})", values)

    def remove(self, *runs: str) -> None:
        """Remove the entries of runs."""
        with self._explained(WRITING):
            self._database.executemany("DELETE FROM entry WHERE run = ?", [(run,) for run in runs])

    def set_reasons(self, reasons: Mapping[str, str]) -> None:
        """Note why entries wait."""
        with self._explained(WRITING):
            rows = [(reason, run) for run, reason in reasons.items()]
            self._database.executemany("UPDATE entry SET reason = ? WHERE run = ?", rows)

    def _initialize(self) -> None:
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
        QueueRequest(priority, decode(after, tuple[str, ...]), wanted, group, at_once),
        place,
        state,
        held,
        reason,
        decode(devices, tuple[str, ...]),
        decode(variables, dict[str, str]),
        *rest,
    )


WAITER_LOCK = "queue.lock"
"""File that the process which starts queued runs holds locked."""

WAITER_LOG = "queue.log"
"""File with the output of that process."""


def wake() -> None:
    """Start the process that starts queued runs, if runs wait and there is none. It never raises."""
    with suppress(Exception):  # whoever calls this has other things to do
        if any(not entry.held for entry in read_entries() if entry.state != "started") and not is_waiter_running():
            start_waiter()


def is_waiter_running() -> bool:
    """Whether a process starts the runs that wait."""
    return lock.is_held(home(), WAITER_LOCK)


def start_waiter() -> None:
    """Start that process; it exits at once if there is one.

    Raises:
        RunError: It cannot be started.
    """
    directory = home().absolute()
    process = start_detached(
        "the process that starts queued runs",
        "-m",
        "accel_engine.run_queue",
        log=directory / WAITER_LOG,
        environment={"ACCEL_TUI_HOME": str(directory)},
    )
    leave(process)
