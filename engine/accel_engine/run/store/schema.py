"""The tables of ``run.db``; ``docs/run-format.md`` describes them."""

import re

SPANS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
"""Steps per row of each level of ``summary``, finest first."""

_STALE = "".join(
    f"DELETE FROM summary WHERE level = {level} AND first_step > {{step}} - {span}; "
    for level, span in enumerate(SPANS)
)

TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    first_step INTEGER NOT NULL,
    count INTEGER NOT NULL,
    started REAL NOT NULL,
    ended REAL NOT NULL
);
CREATE INDEX chunk_step ON chunk (first_step);
CREATE TABLE summary (
    level INTEGER NOT NULL,
    first_step INTEGER NOT NULL,
    series TEXT NOT NULL,
    buckets BLOB NOT NULL,
    PRIMARY KEY (level, first_step, series)
);
CREATE TRIGGER chunk_deleted AFTER DELETE ON chunk
BEGIN {_STALE.format(step="OLD.first_step")}END;
CREATE TRIGGER chunk_cut AFTER UPDATE OF count ON chunk
BEGIN {_STALE.format(step="(NEW.first_step + NEW.count)")}END;
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
    reason TEXT NOT NULL DEFAULT '',
    purpose TEXT NOT NULL DEFAULT '',
    answered REAL,
    obeyed INTEGER,
    answer TEXT
);
CREATE TABLE inside (
    name TEXT PRIMARY KEY,
    time REAL NOT NULL,
    step INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE media (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    step INTEGER NOT NULL,
    time REAL NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (kind, name, step)
);
"""
"""The triggers keep ``summary`` right whoever deletes steps; other programs may know nothing of it."""

FIXED_CHUNK_COLUMNS = ("id", "first_step", "count", "started", "ended")
"""The columns of ``chunk`` that are not series; all others are."""

KEYS = dict.fromkeys(("event", "chunk", "sample", "command", "media"), "id") | {
    "meta": "key",
    "summary": "rowid",
    "inside": "name",
}
"""The key of each table."""


_NAME = re.compile(r"[A-Za-z_]\w*")


def is_series(column: str) -> bool:
    """Whether a column of ``chunk`` can be a series; other programs may have added columns of any name."""
    return column not in FIXED_CHUNK_COLUMNS and bool(_NAME.fullmatch(column))
