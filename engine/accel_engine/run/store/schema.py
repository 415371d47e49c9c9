"""The tables of ``run.db``, their rows, and what these may have; ``docs/run-format.md`` describes them."""

import re
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from accel_engine.errors import RunError
from accel_engine.versioned_database import COMMAND, MAX_TIME, DatabaseRow, Id, Text, Time, convert_row

MAX_STEP = 1 << 32
"""More steps than a run can take."""

MAX_CHUNK = 1 << 24
"""More steps than a chunk can have."""

Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=1 << 10)]
"""The name of a device, a series or a kind."""

Step: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_STEP)]

MAX_SERIES = 1_900
"""Most series of a run: tables of SQLite have at most 2,000 columns."""

SPANS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
"""Steps per row of each level of ``summary``, finest first."""

_STALE = "".join(
    f"DELETE FROM summary WHERE level = {level} AND first_step > {{step}} - {span}; "
    for level, span in enumerate(SPANS)
)

TABLES = f"""
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
{COMMAND};
CREATE TABLE diagnostics (
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

_NAME = re.compile(r"[A-Za-z_]\w*")


def is_series(column: str) -> bool:
    """Whether a column of ``chunk`` can be a series; other programs may have added columns of any name."""
    return column not in FIXED_CHUNK_COLUMNS and bool(_NAME.fullmatch(column))


class MetaRow(DatabaseRow, frozen=True):
    """A row of ``meta``."""

    key: Text
    value: Any


class EventRow(DatabaseRow, frozen=True):
    """A row of ``event``; the body is JSON."""

    id: Id
    kind: Name
    time: Time
    body: Text


class ChunkRow(DatabaseRow, frozen=True):
    """A row of ``chunk`` without its series."""

    id: Id
    first_step: Step
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHUNK)]
    started: Time
    ended: Time

    @property
    def stop(self) -> int:
        """The step after the last one."""
        return self.first_step + self.count


class SampleRow(DatabaseRow, frozen=True):
    """A row of ``sample``; the readings are packed."""

    id: Id
    time: Time
    device: Name
    readings: Text


class SummaryRow(DatabaseRow, frozen=True):
    """A row of ``summary``; the buckets are packed."""

    first_step: Step
    level: Annotated[int, msgspec.Meta(ge=0, lt=len(SPANS))]
    series: Name
    buckets: bytes


class DiagnosticsRow(DatabaseRow, frozen=True):
    """A row of ``diagnostics``; the head is JSON."""

    name: Name
    time: Time
    step: Step
    head: Text
    body: bytes


class MediaRow(DatabaseRow, frozen=True):
    """A row of ``media``; the head is JSON."""

    id: Id
    kind: Name
    name: Name
    step: Annotated[int, msgspec.Meta(ge=0)]
    time: Time
    head: Text
    body: bytes


class StoredChunk(NamedTuple):
    """A row of ``chunk``: the packed values of each series, or ``None``."""

    chunk: ChunkRow
    series: tuple[bytes | None, ...]


def decode_chunk(row: tuple[Any, ...], has_all_series: bool) -> StoredChunk:
    """Check the values of a row of ``chunk``.

    Args:
        row: The values of :class:`ChunkRow` and of series.
        has_all_series: Whether these are all series of the run, of which one must have values.

    Raises:
        ValueError: A value is not valid in a chunk.
    """
    size = len(FIXED_CHUNK_COLUMNS)
    chunk, series = convert_row(row[:size], ChunkRow), row[size:]
    if chunk.stop > MAX_STEP:
        raise ValueError(f"it ends after step {MAX_STEP:,}")
    for packed in series:
        if packed is not None and (type(packed) is not bytes or len(packed) != 4 * chunk.count):
            raise ValueError("a series has not a value per step")
    if has_all_series and not any(series):
        raise ValueError("no series has values")
    return StoredChunk(chunk, series)


def check_times(*times: float) -> None:
    """Check times before they are written.

    Raises:
        RunError: A run cannot have one of them.
    """
    for time in times:
        if not 0 <= time <= MAX_TIME:
            raise RunError(f"a run has times from 0 to {MAX_TIME:,} seconds since the Unix epoch, not {time:,}")
