"""The tables of ``run.db`` and every query of them, by table; ``docs/run-format.md`` describes the format.

SQLite in WAL mode lets one engine write while any number of dashboards read. Steps are stored by
chunk, with a packed little-endian float32 column per series: a million steps are written in about
half a second and read in milliseconds; with a row per step, reading takes a second.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    first_step INTEGER NOT NULL,
    count INTEGER NOT NULL,
    started REAL NOT NULL,
    ended REAL NOT NULL
);
CREATE TABLE sample (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    device TEXT NOT NULL,
    readings TEXT NOT NULL
);
CREATE TABLE command (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    argument REAL,
    answered REAL,
    obeyed INTEGER,
    answer TEXT
);
"""

SPANS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
"""Steps per row of each level of ``summary``, finest first."""

_STALE = "".join(
    f"DELETE FROM summary WHERE level = {level} AND first_step > {{step}} - {span}; "
    for level, span in enumerate(SPANS)
)

_LATER_TABLES = (
    "CREATE INDEX IF NOT EXISTS chunk_step ON chunk (first_step)",
    """
CREATE TABLE IF NOT EXISTS summary (
    level INTEGER NOT NULL,
    first_step INTEGER NOT NULL,
    series TEXT NOT NULL,
    buckets BLOB NOT NULL,
    PRIMARY KEY (level, first_step, series)
)
""",
    f"""
CREATE TRIGGER IF NOT EXISTS chunk_deleted AFTER DELETE ON chunk
BEGIN {_STALE.format(step="OLD.first_step")}END
""",
    f"""
CREATE TRIGGER IF NOT EXISTS chunk_cut AFTER UPDATE OF count ON chunk
BEGIN {_STALE.format(step="(NEW.first_step + NEW.count)")}END
""",
    """
CREATE TABLE IF NOT EXISTS inside (
    name TEXT PRIMARY KEY,
    time REAL NOT NULL,
    step INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL
)
""",
    """
CREATE TABLE IF NOT EXISTS media (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    step INTEGER NOT NULL,
    time REAL NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (kind, name, step)
)
""",
)
"""Statements that add what runs of older programs do not have.

The triggers keep ``summary`` consistent when an older program continues the run.
"""

FIXED_CHUNK_COLUMNS = ("id", "first_step", "count", "started", "ended")
"""The columns of ``chunk`` that are not series; all others are."""

_SERIES = re.compile(r"[A-Za-z_]\w*")

_EVENTS = "SELECT id, kind, time, body FROM event WHERE id > ? {} ORDER BY id LIMIT ?"
_LAST_PHASE = """
AND (kind != 'phase_changed' OR id = (SELECT id FROM event WHERE kind = 'phase_changed' ORDER BY id DESC LIMIT 1))
"""

_ENGINES = """
SELECT time,
    (SELECT max(time) FROM event WHERE id >= first AND id < next),
    (SELECT body FROM event WHERE kind = 'run_ended' AND id > first AND id < next)
FROM (
    SELECT id AS first, time, lead(id, 1, 1 << 62) OVER (ORDER BY id) AS next FROM event WHERE kind = 'run_started'
) ORDER BY first
"""


class Database(sqlite3.Connection):
    """A connection to a run's database; :func:`accel_engine.run.connection.connect` opens it.

    Methods raise :exc:`sqlite3.Error`, which those of :mod:`accel_engine.run.connection` translate.
    """

    directory: Path
    """The run's directory."""

    def configure(self, *, read_only: bool = False) -> None:
        """Set the options of a new connection."""
        # Not SQLite's mode=ro: a reader of a WAL database must be able to create its shared-memory file.
        self.execute(f"PRAGMA query_only = {int(read_only)}")
        self.execute("PRAGMA synchronous = NORMAL")

    def set_lock_timeout(self, seconds: float) -> None:
        """Set how long a statement waits for other connections."""
        self.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def journal_mode(self) -> str:
        """``wal``, or another mode where the file system refuses it."""
        return str(self.execute("PRAGMA journal_mode").fetchone()[0])

    def create(self) -> None:
        """Create all tables in an empty file."""
        self.execute("PRAGMA journal_mode = WAL").fetchone()  # stays a rollback journal where WAL is refused
        self.executescript(TABLES)
        self.upgrade()

    def upgrade(self) -> None:
        """Create the tables that a run of an older program does not have."""
        for statement in _LATER_TABLES:
            self.execute(statement)

    def has_table(self, name: str) -> bool:
        """Whether a table exists."""
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all statements of a block together, or roll all of them back on an exception."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            if self.in_transaction:
                self.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the tables in one transaction."""
        self.execute("BEGIN")
        try:
            yield
        finally:
            self.execute("COMMIT")

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        return int(self.execute("PRAGMA data_version").fetchone()[0])

    # meta

    def meta(self) -> dict[str, Any]:
        """All values by key."""
        return dict(self.execute("SELECT key, value FROM meta"))

    def set_meta(self, **values: object) -> None:
        """Set keys; ``None`` removes a key."""
        for key, value in values.items():
            if value is None:
                self.execute("DELETE FROM meta WHERE key = ?", (key,))
            else:
                self.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def beat(self, process: str, heartbeat: float, written: float) -> bool:
        """Write a heartbeat; returns whether the run is still ``process``'s."""
        return bool(
            self.execute(
                "UPDATE meta SET value = CASE key WHEN 'heartbeat' THEN ? ELSE ? END "
                "WHERE key IN ('heartbeat', 'written') AND EXISTS "
                "(SELECT 1 FROM meta WHERE key = 'process' AND value = ?)",
                (heartbeat, written, process),
            ).rowcount
        )

    # event

    def add_event(self, time: float, kind: str, body: str) -> None:
        """Add an event in its stored form."""
        self.execute("INSERT INTO event (time, kind, body) VALUES (?, ?, ?)", (time, kind, body))

    def events(
        self, after: int = 0, limit: int = -1, *, kinds: Collection[str] = (), past_phases: bool = True
    ) -> sqlite3.Cursor:
        """Id, kind, time and body of the events after an id, oldest first.

        Args:
            after: The id.
            limit: Maximum number of events; -1 for all.
            kinds: Kinds to read; all by default.
            past_phases: Whether to read phases that another phase has followed.
        """
        condition = f"AND kind IN ({_marks(kinds)})" if kinds else "" if past_phases else _LAST_PHASE
        return self.execute(_EVENTS.format(condition), (after, *kinds, limit))

    def last_event(self, *kinds: str) -> tuple[str, str]:
        """Kind and body of the last event of any of these kinds; empty if there is none."""
        query = f"SELECT kind, body FROM event WHERE kind IN ({_marks(kinds)}) ORDER BY id DESC LIMIT 1"
        return self.execute(query, kinds).fetchone() or ("", "")

    def last_of_each(self, *kinds: str) -> list[tuple[str, float, str]]:
        """Kind, time and body of the last event of each of these kinds, oldest first."""
        return self.execute(
            "SELECT kind, time, body FROM event WHERE id IN "
            f"(SELECT max(id) FROM event WHERE kind IN ({_marks(kinds)}) GROUP BY kind) ORDER BY id",
            kinds,
        ).fetchall()

    def bodies(self, kind: str) -> list[str]:
        """The bodies of all events of a kind, oldest first."""
        return [row[0] for row in self.execute("SELECT body FROM event WHERE kind = ? ORDER BY id", (kind,))]

    def engines(self) -> list[tuple[float, float, str | None]]:
        """For each engine of the run: start time, time of its last event, and body of its ``run_ended``."""
        return self.execute(_ENGINES).fetchall()

    # chunk

    def series(self) -> tuple[str, ...]:
        """Names of the per-step series."""
        return tuple(row[1] for row in self.execute("PRAGMA table_info(chunk)") if is_series(row[1]))

    def add_series(self, name: str) -> None:
        """Add a column for a series.

        Raises:
            ValueError: No series can have that name.
        """
        if not is_series(name):
            raise ValueError(f"{name!r} is not a valid series name")
        self.execute(f'ALTER TABLE chunk ADD COLUMN "{name}" BLOB')

    def add_chunk(self, first_step: int, count: int, started: float, ended: float, series: Mapping[str, bytes]) -> None:
        """Add a chunk, with the packed values of each series."""
        self.execute(
            f"INSERT INTO chunk (first_step, count, started, ended{_columns(series)}) "
            f"VALUES ({_marks(range(4 + len(series)))})",
            (first_step, count, started, ended, *series.values()),
        )

    def chunks(self, after: int, limit: int = -1) -> tuple[tuple[str, ...], list[Row]]:
        """The names of all series, and the rows of up to ``limit`` chunks after an id, oldest first."""
        cursor = self.execute("SELECT * FROM chunk WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
        return tuple(column[0] for column in cursor.description[len(FIXED_CHUNK_COLUMNS) :]), cursor.fetchall()

    def chunks_between(self, first: int, last: int, series: Collection[str]) -> list[Row]:
        """First step, count, start, end and ``series`` of the chunks with a step from ``first`` to before ``last``."""
        return self.execute(
            f"SELECT first_step, count, started, ended{_columns(series)} FROM chunk WHERE first_step < ? AND "
            "first_step >= coalesce((SELECT max(first_step) FROM chunk WHERE first_step <= ?), 0) ORDER BY first_step",
            (last, first),
        ).fetchall()

    def chunk_from_end(self, offset: int = 0) -> tuple[int, int]:
        """Id of the last chunk, or of one before it, and the step after it; zeros if there is none."""
        query = "SELECT id, first_step + count FROM chunk ORDER BY id DESC LIMIT 1 OFFSET ?"
        return self.execute(query, (offset,)).fetchone() or (0, 0)

    def first_step_after(self, chunk: int) -> int:
        """The smallest first step of the chunks after an id, of which there is at least one."""
        return int(self.execute("SELECT min(first_step) FROM chunk WHERE id > ?", (chunk,)).fetchone()[0])

    def chunk_ends(self, after: int) -> list[tuple[float, int]]:
        """End time of each chunk after an id, and the step after it."""
        query = "SELECT ended, first_step + count FROM chunk WHERE id > ? ORDER BY id"
        return self.execute(query, (after,)).fetchall()

    def end_before(self, step: int, default: float) -> float:
        """End time of the last chunk that begins before a step."""
        query = "SELECT ended FROM chunk WHERE first_step < ? ORDER BY first_step DESC LIMIT 1"
        return float((self.execute(query, (step,)).fetchone() or (default,))[0])

    def step_from(self, step: int) -> int:
        """The first recorded step from a step on; the step itself if there is none."""
        query = "SELECT first_step + count FROM chunk WHERE first_step <= ? ORDER BY first_step DESC LIMIT 1"
        (end,) = self.execute(query, (step,)).fetchone() or (0,)
        (later,) = self.execute("SELECT min(first_step) FROM chunk WHERE first_step > ?", (step,)).fetchone()
        return step if end > step or later is None else int(later)

    def delete_steps(self, step: int, series: Collection[str]) -> None:
        """Delete the steps from ``step`` on, and cut the chunk that contains it."""
        self.execute("DELETE FROM chunk WHERE first_step >= ?", (step,))
        cuts = "".join(f', "{name}" = substr("{name}", 1, 4 * (:step - first_step))' for name in series)
        self.execute(
            "UPDATE chunk SET count = :step - first_step, "
            f"ended = started + (ended - started) * (:step - first_step) / count{cuts} "
            "WHERE id = :last AND first_step + count > :step",
            {"step": step, "last": self.chunk_from_end()[0]},
        )

    # summary

    def add_summary(self, rows: Iterable[tuple[int, int, str, bytes]]) -> None:
        """Add rows: level, first step, series and packed buckets."""
        self.executemany("INSERT INTO summary VALUES (?, ?, ?, ?)", rows)

    def summary(self, level: int, first: int, last: int, series: Collection[str]) -> sqlite3.Cursor:
        """First step, series and packed buckets of a level's rows that begin from ``first`` to before ``last``."""
        return self.execute(
            "SELECT first_step, series, buckets FROM summary "
            f"WHERE level = ? AND first_step >= ? AND first_step < ? AND series IN ({_marks(series)})",
            (level, first, last, *series),
        )

    def summary_end(self, level: int) -> int:
        """The step after the last row of a level; 0 if it has none."""
        (first,) = self.execute("SELECT max(first_step) FROM summary WHERE level = ?", (level,)).fetchone()
        return 0 if first is None else int(first) + SPANS[level]

    # sample

    def add_samples(self, rows: Iterable[tuple[float, str, str]]) -> None:
        """Add rows: time, device and packed readings."""
        self.executemany("INSERT INTO sample (time, device, readings) VALUES (?, ?, ?)", rows)

    def samples(self, after: int, limit: int, *, latest: bool = False) -> list[tuple[int, float, str, str]]:
        """Id, time, device and packed readings of up to ``limit`` samples after an id, the oldest or the latest ones.

        The latest ones are in reverse order.
        """
        return self.execute(
            f"SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id {'DESC' * latest} LIMIT ?",
            (after, limit),
        ).fetchall()

    def last_id(self, table: str) -> int:
        """The last id of a table; 0 if it is empty."""
        return int(self.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])

    # command

    def add_command(self, time: float, who: str, name: str, argument: float | None) -> int:
        """Add a command and return its id."""
        query = "INSERT INTO command (time, who, name, argument) VALUES (?, ?, ?, ?)"
        return int(self.execute(query, (time, who, name, argument)).lastrowid or 0)

    def unanswered(self) -> list[tuple[int, float, str, str, float | None]]:
        """Id, time, sender, name and argument of the commands without an answer, oldest first."""
        query = "SELECT id, time, who, name, argument FROM command WHERE answered IS NULL ORDER BY id"
        return self.execute(query).fetchall()

    def answer(self, command: int, time: float, answer: str, *, obeyed: bool) -> None:
        """Answer a command."""
        query = "UPDATE command SET answered = ?, obeyed = ?, answer = ? WHERE id = ?"
        self.execute(query, (time, obeyed, answer, command))

    def answer_to(self, command: int) -> tuple[bool, str] | None:
        """Whether a command was carried out, and the answer; ``None`` without an answer."""
        query = "SELECT obeyed, answer FROM command WHERE id = ? AND answered IS NOT NULL"
        row = self.execute(query, (command,)).fetchone()
        return (bool(row[0]), str(row[1])) if row else None

    def reject_commands(self, time: float) -> None:
        """Reject the commands that an engine has left unanswered at its exit."""
        query = "UPDATE command SET answered = ?, obeyed = 0, answer = 'the engine had exited' WHERE answered IS NULL"
        self.execute(query, (time,))

    # inside

    def set_inside(self, name: str, time: float, step: int, head: str, body: bytes) -> None:
        """Write a row of diagnostics in place of the one with its name."""
        self.upgrade()
        self.execute("INSERT OR REPLACE INTO inside VALUES (?, ?, ?, ?, ?)", (name, time, step, head, body))

    def inside(self) -> list[tuple[str, int, str, bytes]]:
        """Name, step, head and body of the diagnostics by name; empty for a run of an older program."""
        if not self.has_table("inside"):
            return []
        return self.execute("SELECT name, step, head, body FROM inside ORDER BY name").fetchall()

    def inside_times(self) -> list[tuple[float]]:
        """When each row of diagnostics was written, by name."""
        return self.execute("SELECT time FROM inside ORDER BY name").fetchall() if self.has_table("inside") else []

    def delete_inside(self, step: int) -> None:
        """Delete the diagnostics of later steps."""
        self.execute("DELETE FROM inside WHERE step > ?", (step,))

    # media

    def set_media(self, kind: str, name: str, step: int, time: float, head: str, body: bytes) -> None:
        """Write an item in place of the one of its kind, name and step."""
        query = "INSERT OR REPLACE INTO media (kind, name, step, time, head, body) VALUES (?, ?, ?, ?, ?, ?)"
        self.execute(query, (kind, name, step, time, head, body))

    def media_series(self) -> list[tuple[str, str, int, int, int, int]]:
        """Kind, name, number of items, first step, last step and last id of each series; read from an index alone."""
        if not self.has_table("media"):
            return []
        return self.execute(
            "SELECT kind, name, count(*), min(step), max(step), max(id) FROM media GROUP BY kind, name"
        ).fetchall()

    def media_steps(self, kind: str, name: str) -> list[int]:
        """The steps of a series, in order."""
        query = "SELECT step FROM media WHERE kind = ? AND name = ? ORDER BY step"
        return [row[0] for row in self.execute(query, (kind, name))]

    def media(self, kind: str, name: str, step: int) -> tuple[int, str, bytes] | None:
        """Step, head and body of the newest item of a series up to a step."""
        query = (
            "SELECT step, head, body FROM media WHERE kind = ? AND name = ? AND step <= ? ORDER BY step DESC LIMIT 1"
        )
        row: tuple[int, str, bytes] | None = self.execute(query, (kind, name, step)).fetchone()
        return row

    def media_after(self, after: int) -> sqlite3.Cursor:
        """Id, time, step, name, kind, head and body of the items after an id, in the order in which they were added."""
        query = "SELECT id, time, step, name, kind, head, body FROM media WHERE id > ? ORDER BY id"
        return self.execute(query, (after,))

    def media_bytes(self) -> int:
        """Bytes of all bodies."""
        return int(self.execute("SELECT coalesce(sum(length(body)), 0) FROM media").fetchone()[0])

    def delete_media(self, step: int) -> None:
        """Delete the items of later steps."""
        self.execute("DELETE FROM media WHERE step > ?", (step,))


def is_series(column: str) -> bool:
    """Whether a column of ``chunk`` can be a series; other programs may have added columns of any name."""
    return column not in FIXED_CHUNK_COLUMNS and bool(_SERIES.fullmatch(column))


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _columns(series: Iterable[str]) -> str:
    return "".join(f', "{name}"' for name in series)
