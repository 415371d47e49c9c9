"""The queue's database, ``queue.db`` in the program's directory, and the process that starts the runs in it."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from accel_engine.json_values import decode, encode
from accel_engine.process.detached import leave, start_detached
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import home, make_private
from accel_engine.run_queue.queue_entries import QueueRequest, StoredEntry, WaitReason
from accel_engine.versioned_database import (
    META,
    WRITING,
    DatabaseRow,
    Text,
    VersionedDatabase,
    database_errors,
    use_wal,
)

DATABASE = "queue.db"
"""File in the program's directory with the runs that wait."""

SCHEMA_VERSION = 2
"""The version of the format; see *Compatibility* in ``CONTRIBUTING.md``."""

CURE = "Delete it and add the runs again, each with accel-tui queue release RUN"
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
    others TEXT NOT NULL,
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
        RunError: The file cannot be opened or created, or has another format. All methods raise it, too.
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
    def at_once(self) -> int | None:
        """Most runs at once; ``None`` for as many as there are accelerators, or one on the CPU."""
        found = self.meta(AT_ONCE) or self.meta(DEFAULT_AT_ONCE)
        return None if found is None else self.decode("meta", AT_ONCE, int, found)

    def entries(self) -> list[StoredEntry]:
        """All entries, in the order in which they start."""
        return sorted(map(self._entry, self.rows("entry", _EntryRow)), key=lambda entry: entry.order)

    def started(self) -> list[Path]:
        """The directories of runs that were started, as far as is noted."""
        return [Path(row.directory) for row in self.rows("entry", _EntryRow, "WHERE state = 'started' ORDER BY run")]

    def last_place(self) -> int:
        """The largest number that orders entries; 0 without entries."""
        row = self.row("entry", _EntryRow, "ORDER BY place DESC")
        return row.place if row else 0

    def find(self, run: str) -> StoredEntry | None:
        """The entry of a run; ``None`` if there is none."""
        row = self.row("entry", _EntryRow, "WHERE run = ?", (run,))
        return self._entry(row) if row else None

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
            entry.hold_reason,
            entry.reason.text,
            encode(entry.reason.others),
            encode(entry.devices),
            encode(entry.environment),
            entry.folder,
            entry.added,
        )
        self.execute(f"INSERT OR REPLACE INTO entry VALUES ({', '.join('?' * len(values))})", values)

    def remove(self, *runs: str) -> None:
        """Remove the entries of runs."""
        self.execute_many("DELETE FROM entry WHERE run = ?", [(run,) for run in runs])

    def set_reasons(self, reasons: Mapping[str, WaitReason]) -> None:
        """Note why entries wait."""
        rows = [(reason.text, encode(reason.others), run) for run, reason in reasons.items()]
        self.execute_many("UPDATE entry SET reason = ?, others = ? WHERE run = ?", rows)

    def _initialize(self) -> None:
        if self.value("PRAGMA user_version"):
            return
        use_wal(self._database)
        with self.transaction():
            for statement in TABLES:
                self.execute(statement)
            self.execute("PRAGMA user_version = 1")

    def _entry(self, row: "_EntryRow") -> StoredEntry:
        return self.decode("entry", row.run, _decoded, row)


class _EntryRow(DatabaseRow, frozen=True):
    run: Text
    directory: Text
    place: int
    priority: int
    after: Text
    wanted_devices: int | None
    group_name: Text
    at_once: int
    state: Text
    held: Text
    reason: Text
    others: Text
    devices: Text
    environment: Text
    folder: Text
    added: float


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


def _decoded(row: _EntryRow) -> StoredEntry:
    return StoredEntry(
        row.run,
        Path(row.directory),
        QueueRequest(row.priority, decode(row.after, tuple[str, ...]), row.wanted_devices, row.group_name, row.at_once),
        row.place,
        row.state,
        row.held,
        WaitReason(row.reason, decode(row.others, tuple[str, ...])),
        decode(row.devices, tuple[str, ...]),
        decode(row.environment, dict[str, str]),
        row.folder,
        row.added,
    )


WAITER_LOCK = "queue.lock"
"""File that the process which starts queued runs holds locked."""

WAITER_LOG = "queue.log"
"""File with the output of that process."""


def ensure_waiter() -> None:
    """Start the process that starts queued runs, if runs wait and there is none. It never raises."""
    with suppress(Exception):  # whoever calls this has other things to do
        if (
            any(not entry.hold_reason for entry in read_entries() if entry.state != "started")
            and not is_waiter_running()
        ):
            start_waiter()


def is_waiter_running() -> bool:
    """Whether a process starts the runs that wait."""
    return lock.is_locked(home(), WAITER_LOCK)


def start_waiter() -> None:
    """Start the process that starts queued runs; it exits at once if there is one.

    Raises:
        RunError: The process cannot be started.
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
