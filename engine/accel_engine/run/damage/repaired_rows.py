"""Copies the rows that are whole from a damaged database to a new one."""

import sqlite3
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from accel_engine.events import KINDS, RunStarted, from_stored
from accel_engine.json_values import encode
from accel_engine.run import diagnostics, media
from accel_engine.run.damage.salvage import DamagedFile, damaged_file
from accel_engine.run.engine.commands import Command
from accel_engine.run.store import downsampled_steps, schema
from accel_engine.run.store.annotations import NAME_LENGTH
from accel_engine.run.store.database import SCHEMA_VERSION, RunDatabase
from accel_engine.run.store.meta import decode_meta, read_meta, stored_plan
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.run.store.stored_events import last_event
from accel_engine.text import encodable
from accel_engine.versioned_database import NOT_DECODED, AnswerRow, DatabaseRow, R, check_version, convert_row

_KEPT_META = ("plan", "created", "script", "launched", "source", "bench", "host", "name", "note", "tags")
"""The keys of ``meta`` that a repaired run keeps; the others are about processes."""

_KINDS: Mapping[str, tuple[type[DatabaseRow], ...]] = {
    "meta": (schema.MetaRow,),
    "event": (schema.EventRow,),
    "chunk": (schema.ChunkRow,),
    "sample": (schema.SampleRow,),
    "command": (Command, AnswerRow),
    "diagnostics": (schema.DiagnosticsRow,),
    "media": (schema.MediaRow,),
    "summary": (schema.SummaryRow,),
}
"""The rows of each table, and their parts that may be missing."""


@dataclass(frozen=True, slots=True)
class SavedCount:
    """How many of something were saved."""

    saved: int = 0
    """Number of rows that were saved."""
    lost: int = 0
    """Number of damaged rows. Rows that cannot be read are counted at most: some may have been deleted before."""

    def __add__(self, other: "SavedCount") -> "SavedCount":
        return SavedCount(self.saved + other.saved, self.lost + other.lost)


def copy_whole_rows(directory: Path, database: RunDatabase, run: str) -> dict[str, SavedCount]:
    """Copy what is whole of a damaged database; returns the figures by table.

    Args:
        directory: Where the damaged one is; nothing of it changes.
        database: A new one.
        run: Names the new run if its name is lost.

    Raises:
        OSError, RunError, sqlite3.Error: The database cannot be copied.
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


def _copy_rows(source: DamagedFile, database: RunDatabase, run: str) -> dict[str, SavedCount]:
    """Copy the whole rows of a run.

    Args:
        source: The damaged file.
        database: An empty database.
        run: The run's id.

    Returns:
        How many rows of each table were saved.
    """
    rows = {"meta": _copy_meta(source, database)}
    for series in filter(schema.is_series, source.columns("chunk") or ()):
        database.add_series(series)
    rows |= {table: _copy(table, source, database) for table in _KINDS if table not in ("meta", "summary")}
    _name(database, run)
    downsampled_steps.extend(database, database.chunk_from_end()[1])
    return rows


def is_whole(database: RunDatabase) -> bool:
    """Whether nothing of a database is damaged or missing.

    Raises:
        RunError: A table, a column or a page is missing or damaged.
    """
    for table, kinds in _KINDS.items():
        columns, check = database.columns(table), _Check(table)
        if not {name for kind in kinds for name in kind.__struct_fields__} <= {*columns}:
            return False
        for row in database.query(f"SELECT * FROM {table}"):
            database.decode(table, row[0], check, dict(zip(columns, row, strict=True)))
    return not _out_of_order(database) and database.value("PRAGMA integrity_check(1)") == "ok"


class _Check:
    """Checks the rows of a table, oldest first; calls raise one of :data:`NOT_DECODED` for a damaged row."""

    def __init__(self, table: str) -> None:
        self._kind = _KINDS[table][0]
        self._unpacker = SampleUnpacker()

    def __call__(self, values: Mapping[str, Any]) -> None:
        match _of(values, self._kind):
            case schema.MetaRow(key=key, value=value):
                decode_meta(key, value)
            case schema.EventRow(kind=kind, time=time, body=body) if kind in KINDS:
                from_stored(kind, time, body)
            case schema.ChunkRow():
                series = (values[name] for name in values if schema.is_series(name))
                schema.decode_chunk(
                    (*(values[name] for name in schema.FIXED_CHUNK_COLUMNS), *series), has_all_series=True
                )
            case schema.SummaryRow() as row:
                downsampled_steps.decode_summary(row)
            case schema.SampleRow(time=time, device=device, readings=readings):
                self._unpacker.unpack(time, device, readings)
            case Command() if values["answered"] is not None:
                _of(values, AnswerRow)
            case schema.DiagnosticsRow() as row if diagnostics.is_known(row):
                diagnostics.decode_row(row)
            case schema.MediaRow() as row if row.kind in media.KINDS:
                media.LoggedItem.of_row(row)


def _of(values: Mapping[str, Any], kind: type[R]) -> R:
    return convert_row(tuple(values[name] for name in kind.__struct_fields__), kind)


def _copy_meta(source: DamagedFile, database: RunDatabase) -> SavedCount:
    figures = SavedCount()
    for key in _KEPT_META:
        try:
            row = source.value("meta", ("value",), key)
            if row is None:
                continue
            decode_meta(key, row[0])
        except (sqlite3.DatabaseError, *NOT_DECODED):  # if it cannot be read, it may be there or not
            figures += SavedCount(lost=1)
            continue
        database.set_meta(**{key: row[0]})
        figures += SavedCount(saved=1)
    return figures


def _copy(table: str, source: DamagedFile, database: RunDatabase) -> SavedCount:
    """Copy the rows of a table that can be decoded."""
    found_columns = source.columns(table)
    if found_columns is None:
        return SavedCount(lost=source.most_rows)
    known, check = database.columns(table), _Check(table)
    columns = [name for name in found_columns if name in known]
    if not columns:
        return SavedCount()
    names = ", ".join(f'"{name}"' for name in columns)
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    unreadable, found, saved = [0], 0, 0
    with database.transaction():
        for row in source.rows(table, columns, unreadable):
            found += 1
            with suppress(*NOT_DECODED):
                check(dict(zip(columns, row, strict=True)))
                saved += database.execute(insert, row).rowcount
        if table == "chunk":
            wrong = _out_of_order(database)
            database.execute_many("DELETE FROM chunk WHERE id = ?", [(number,) for number in wrong])
            saved -= len(wrong)
    return SavedCount(saved, unreadable[0] + found - saved)


def _out_of_order(database: RunDatabase) -> list[int]:
    """The ids of the chunks that are not in the longest sequence of rising chunks that do not overlap."""
    chunks = list(database.chunk_places())
    ends: list[int] = []  # the lowest end of a sequence of each length
    last: list[int] = []  # the index of its last chunk
    before: list[int] = []
    for index, chunk in enumerate(chunks):
        length = bisect_right(ends, chunk.first_step)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(chunk.stop)
            last.append(index)
        elif chunk.stop < ends[length]:
            ends[length], last[length] = chunk.stop, index
    kept: set[int] = set()
    index = last[-1] if last else -1
    while index >= 0:
        kept.add(index)
        index = before[index]
    return [chunk.id for index, chunk in enumerate(chunks) if index not in kept]


def _name(database: RunDatabase, run: str) -> None:
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
