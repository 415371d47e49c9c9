"""Copies the rows that are whole from a damaged database to a new one."""

import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from accel_engine.events import RunStarted
from accel_engine.json_values import encode
from accel_engine.run import diagnostics, media
from accel_engine.run.damage.salvage import DamagedFile, damaged_file
from accel_engine.run.store import downsampled_steps
from accel_engine.run.store.annotations import NAME_LENGTH
from accel_engine.run.store.connection import SCHEMA_VERSION
from accel_engine.run.store.database import Database
from accel_engine.run.store.meta import read_meta, stored_plan
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.run.store.schema import SPANS, is_series
from accel_engine.run.store.stored_events import decoded_events, last_event
from accel_engine.run.store.whole_rows import TABLES
from accel_engine.text import encodable
from accel_engine.versioned_database import check_version

_KEPT_META = ("plan", "created", "script", "launched", "source", "bench", "host", "name", "note", "tags")
"""The keys of ``meta`` that a repaired run keeps; the others are about processes."""

_TABLES = ("event", "chunk", "sample", "command", "inside", "media")


@dataclass(frozen=True, slots=True)
class SavedCount:
    """How many of something were saved.

    Attributes:
        saved: Their number.
        lost: How many are damaged; of rows that cannot be read at most, as some of them may have been deleted before.
    """

    saved: int = 0
    lost: int = 0

    def __add__(self, other: "SavedCount") -> "SavedCount":
        return SavedCount(self.saved + other.saved, self.lost + other.lost)


def copy_whole_rows(directory: Path, database: Database, run: str) -> dict[str, SavedCount]:
    """Copy what is whole of a damaged database; returns the figures by table.

    Args:
        directory: Where the damaged one is; nothing of it changes.
        database: A new one.
        run: Names the new run if its name is lost.

    Raises:
        OSError, RunError, sqlite3.Error: It cannot be copied.
    """
    with (
        TemporaryDirectory(prefix=".repair-", dir=database.directory.parent) as folder,
        damaged_file(directory, Path(folder)) as source,
    ):
        with suppress(sqlite3.DatabaseError):
            (version,) = source.value("meta", ("value",), "schema") or (None,)
            if isinstance(version, int):
                check_version(f"run {directory.name}", version, SCHEMA_VERSION)
        return _copy_rows(source, database, run)


def _copy_rows(source: DamagedFile, database: Database, run: str) -> dict[str, SavedCount]:
    """Copy the whole rows of a run.

    Args:
        source: The damaged file.
        database: An empty database.
        run: The run's id.

    Returns:
        How many rows of each table were saved.
    """
    rows = {"meta": _copy_meta(source, database)}
    for series in filter(is_series, source.columns("chunk") or ()):
        database.add_series(series)
    rows |= {table: _copy(table, source, database) for table in _TABLES}
    _name(database, run)
    downsampled_steps.extend(database, database.chunk_from_end()[1])
    return rows


def is_whole(database: Database) -> bool:
    """Whether nothing of a database is damaged or missing.

    Raises:
        sqlite3.Error: A table, a column or a page is missing or damaged.
    """
    read_meta(database)
    for table in TABLES:
        database.count(table)
        _decode(table, database)
    database.find_damaged()
    return database.is_sound() and not database.count_damaged()


def _copy_meta(source: DamagedFile, database: Database) -> SavedCount:
    found = 0
    for key in _KEPT_META:
        try:
            row = source.value("meta", ("value",), key)
        except sqlite3.DatabaseError:  # it may be there, or not
            found += 1
            continue
        if row:
            database.set_meta(**{key: row[0]})
            found += 1
    whole = read_meta(database)
    for key in _KEPT_META:
        if key not in whole:
            database.set_meta(**{key: None})
    kept = sum(key in whole for key in _KEPT_META)
    return SavedCount(kept, found - kept)


def _copy(table: str, source: DamagedFile, database: Database) -> SavedCount:
    """Copy the whole rows of a table."""
    found_columns = source.columns(table)
    if found_columns is None:
        return SavedCount(lost=source.most_rows)
    columns = [name for name in found_columns if name in database.columns(table)]
    if not columns:
        return SavedCount()
    unreadable, found = [0], 0
    with database.transaction():
        for row in source.rows(table, columns, unreadable):
            database.add_row(table, columns, row)
            found += 1
        _decode(table, database)
        if table == "chunk":
            database.delete_rows("chunk", _out_of_order(database))
        database.delete_damaged(table)
    saved = database.count(table)
    return SavedCount(saved, unreadable[0] + found - saved)


def _decode(table: str, database: Database) -> None:
    """Find the rows of a table whose contents are damaged."""
    decoded: Iterator[object] = iter(())
    if table == "event":
        decoded = decoded_events(database, database.events())
    elif table == "sample":
        decoded = database.decoded("sample", database.samples(0, -1), SampleUnpacker().unpack)
    elif table == "summary":
        decoded = chain.from_iterable(downsampled_steps.decoded_rows(database, level) for level in range(len(SPANS)))
    elif table == "inside":
        decoded = database.decoded("inside", diagnostics.known_rows(database), diagnostics.decode_row)
    elif table == "media":
        rows = ((row[0], *row) for row in database.media_after(0) if row[4] in media.KINDS)
        decoded = database.decoded("media", rows, media.LoggedItem.of_row)
    for _ in decoded:
        pass


def _out_of_order(database: Database) -> list[int]:
    """The ids of the chunks that are not in the longest sequence of rising chunks that do not overlap."""
    ids, starts, stops = zip(*database.chunk_places(), strict=True) if database.count("chunk") else ((), (), ())
    ends: list[int] = []  # the lowest end of a sequence of each length
    last: list[int] = []  # the index of its last chunk
    before: list[int] = []
    for index, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        length = bisect_right(ends, start)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(stop)
            last.append(index)
        elif stop < ends[length]:
            ends[length], last[length] = stop, index
    kept: set[int] = set()
    index = last[-1] if last else -1
    while index >= 0:
        kept.add(index)
        index = before[index]
    return [number for index, number in enumerate(ids) if index not in kept]


def _name(database: Database, run: str) -> None:
    """Complete the rows of ``meta``, with a name that says what the run is."""
    meta = read_meta(database)
    started = last_event(database, RunStarted)
    if "plan" not in meta and started:
        database.set_meta(plan=encode(started.plan))
    plan = read_meta(database).get("plan")
    name = meta.get("name") or str((stored_plan(plan) if plan else {}).get("name") or "") or run
    suffix = " (repaired)"
    database.set_meta(
        schema=SCHEMA_VERSION,
        created=meta.get("created", database.first_time()),
        name=encodable(name)[: NAME_LENGTH - len(suffix)] + suffix,
    )
