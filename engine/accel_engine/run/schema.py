"""The schema of ``run.db``, and opening it.

SQLite in WAL mode lets one engine write while any number of dashboards read. Steps are stored by
chunk, with a packed little-endian float32 column per series: a million steps are written in about
half a second and read in milliseconds; with a row per step, reading takes a second.
"""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote_from_bytes

from accel_engine.errors import RunError

SCHEMA_VERSION = 2
"""Incremented whenever an older program would misread a newer file; version 1 does not know a run's lock."""

DATABASE = "run.db"

SCHEMA = """
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

SUMMARY = (
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
)
"""Statements that create what :mod:`accel_engine.run.downsampled_steps` needs, if it does not exist.

The triggers keep it consistent when an older program continues the run.
"""

INSIDE = """
CREATE TABLE IF NOT EXISTS inside (
    name TEXT PRIMARY KEY,
    time REAL NOT NULL,
    step INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL
)
"""
"""Creates the table of :mod:`accel_engine.run.diagnostics`, if it does not exist."""

LEARNING_RATE = "learning_rate"
"""Name of the series of learning rates, as used by each step."""

FIXED_CHUNK_COLUMNS = ("id", "first_step", "count", "started", "ended")
"""The columns of ``chunk`` that are not series; all others are."""

_RESERVED = frozenset((*FIXED_CHUNK_COLUMNS, "event", "step", "epoch", "time", "seconds", "steps_per_second"))
"""Names of other columns in files, tables and JSON lines, which no series can have."""

_SERIES = re.compile(r"[A-Za-z_]\w*")


def connect(directory: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a run's database.

    Raises:
        RunError: There is no run, it is damaged, or a newer program created it.
    """
    path = directory / DATABASE
    if not path.is_file():
        raise RunError(f"no run in {directory}")
    connection = None
    try:
        connection = _open(path)
        # Not SQLite's mode=ro: a reader of a WAL database must be able to create its shared-memory file.
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = _version(connection)
    except (sqlite3.Error, TypeError, ValueError) as error:
        if connection:
            connection.close()
        raise RunError(f"cannot read run {directory.name}: {error}") from error
    if version > SCHEMA_VERSION:
        connection.close()
        raise RunError(
            f"run {directory.name} was created by a newer accel-tui (format {version}; this version reads up to "
            f"{SCHEMA_VERSION}): upgrade accel-tui to open it"
        )
    return connection


def initialize(path: Path) -> sqlite3.Connection:
    """Create an empty database that only its owner can read."""
    path.touch(mode=0o600)
    connection = _open(path)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchone()  # stays a rollback journal where WAL is refused
    connection.executescript(SCHEMA)
    for statement in (*SUMMARY, INSIDE):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all statements of a block together, or roll all of them back on an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def series_name(name: str) -> str:
    """Convert a metric's name to a valid series name: ``Acc@1`` to ``acc_1``, ``time`` to ``metric_time``."""
    plain = re.sub(r"\W", "_", name.lower(), flags=re.ASCII)
    return f"metric_{plain}" if plain in _RESERVED or not plain or plain[0].isdigit() else plain


def is_series(column: str) -> bool:
    """Whether a column of ``chunk`` can be a series; other programs may have added columns of any name."""
    return column not in FIXED_CHUNK_COLUMNS and bool(_SERIES.fullmatch(column))


def series_columns(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Names of the run's per-step series."""
    columns = [row[1] for row in connection.execute("PRAGMA table_info(chunk)")]
    return tuple(filter(is_series, columns))


def _version(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if row is None:
        raise ValueError("no format version")
    return int(row[0])


def _open(path: Path) -> sqlite3.Connection:
    # With its default mode, SQLite would create an empty file if the run is just being deleted.
    address = f"file:{quote_from_bytes(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(address, timeout=5.0, isolation_level=None, check_same_thread=False, uri=True)
