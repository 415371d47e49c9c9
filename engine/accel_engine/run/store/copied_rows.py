"""Copies a run from one database to another, row by row: what the copy lacks is read there and written here.

The copy has the rows of the run with the same ids, so that it tells itself where to go on. Rows are added, and what a
run deletes when it trains on from an earlier step is deleted in the copy, too. Commands are not copied.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import astuple

from accel_engine.json_values import encode
from accel_engine.run.store import schema
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.meta import HOST_STATE, HOST_SUMMARY
from accel_engine.versioned_database import DatabaseRow

MetaValue: TypeAlias = str | int | float | None

T = TypeVar("T")

_OWN = frozenset({"schema", "heartbeat", "written", "kills", HOST_STATE, HOST_SUMMARY})
"""Keys of ``meta`` that are not copied: of this file alone, or of no use without the engine's machine."""

_ROW_BYTES = 64
"""Bytes of a row besides texts and values."""


def _size(row: DatabaseRow) -> int:
    return _ROW_BYTES + sum(len(value) for value in astuple(row) if isinstance(value, str | bytes))


def _chunk_size(stored: schema.StoredChunk) -> int:
    return _ROW_BYTES + sum(len(values) for values in stored.series if values)


@dataclass(frozen=True, slots=True)
class Position:
    """The last rows of each table that a copy has."""

    meta: str = ""
    """The digest of its ``meta``."""
    event: int = 0
    chunk: int = 0
    """Id of the last row of ``chunk``, as ``event``, ``sample`` and ``media`` have it of theirs; 0 for none."""
    stop: int = 0
    """The step after its last one."""
    summaries: tuple[int, ...] = (0,) * len(schema.SPANS)
    """The step after the last row of each level."""
    sample: int = 0
    media: int = 0
    media_count: int = 0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """The time of each row by its name."""


@dataclass(frozen=True, slots=True)
class CopiedChunk:
    """A row of ``chunk``."""

    row: schema.ChunkRow
    values: tuple[bytes | None, ...]
    """The packed values of each of :attr:`NewRows.series`."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows that a copy lacks, or the first of them."""

    meta: Mapping[str, MetaValue] | None = None
    """All values, if one has changed."""
    events: tuple[schema.EventRow, ...] = ()
    cut: int | None = None
    """The step from which on its steps are deleted first; ``None`` for none."""
    series: tuple[str, ...] = ()
    chunks: tuple[CopiedChunk, ...] = ()
    summaries: tuple[schema.SummaryRow, ...] = ()
    samples: tuple[schema.SampleRow, ...] = ()
    diagnostics: tuple[schema.DiagnosticsRow, ...] = ()
    gone_diagnostics: tuple[str, ...] = ()
    media: tuple[schema.MediaRow, ...] = ()
    media_ids: tuple[int, ...] | None = None
    """Ids of the media that are still there; ``None`` if all are."""
    more: bool = False
    """Whether there is more."""

    def __bool__(self) -> bool:
        return self != NewRows(series=self.series)


def position_of(database: RunDatabase) -> Position:
    """Find the last rows that a copy has."""
    chunk, stop = database.chunk_from_end()
    return Position(
        _digest(copied_meta(database)),
        database.last_id("event"),
        chunk,
        stop,
        tuple(map(database.summary_end, range(len(schema.SPANS)))),
        database.last_id("sample"),
        database.last_id("media"),
        database.media_count(),
        dict(database.diagnostics_by_time()),
    )


def copied_meta(database: RunDatabase) -> dict[str, MetaValue]:
    """The values of ``meta`` that are copied."""
    return {row.key: row.value for row in database.meta_rows() if row.key not in _OWN}


def _digest(meta: Mapping[str, MetaValue]) -> str:
    return hashlib.sha256(encode(sorted(meta.items())).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_new_rows(database: RunDatabase, position: Position, size: int) -> NewRows:
    """Read what a copy lacks, what is shown first before the rest.

    Args:
        database: The run.
        position: What the copy has.
        size: About how many bytes to read at most; a single row may be larger.
    """
    budget = _Budget(size)
    with database.snapshot():
        meta = copied_meta(database)
        names = database.series()
        return NewRows(
            meta=meta if _digest(meta) != position.meta else None,
            events=budget.of(database.events(position.event)),
            cut=_cut(database, position),
            series=names,
            chunks=tuple(
                CopiedChunk(stored.chunk, stored.series)
                for stored in budget.of(database.new_chunks(names, position.chunk), _chunk_size)
            ),
            summaries=tuple(
                row
                for level, end in enumerate(position.summaries)
                for row in budget.of(database.summary_after(level, end), group=lambda row: row.first_step)
            ),
            diagnostics=budget.of(database.changed_diagnostics(position.diagnostics)),
            gone_diagnostics=tuple(position.diagnostics.keys() - database.diagnostics_by_time().keys()),
            samples=budget.of(database.new_rows("sample", schema.SampleRow, position.sample)),
            media=budget.of(database.media_after(position.media)),
            media_ids=(
                tuple(database.media_ids(position.media))
                if database.media_count(position.media) != position.media_count
                else None
            ),
            more=budget.is_exceeded,
        )


def write_new_rows(database: RunDatabase, rows: NewRows) -> None:
    """Write what :func:`read_new_rows` has read, in a transaction of the caller.

    Raises:
        ValueError: A series has a name that none can have.
    """
    if rows.meta is not None:
        gone = copied_meta(database).keys() - rows.meta.keys()
        database.set_meta(
            **{**dict.fromkeys(gone), **{k: v for k, v in rows.meta.items() if k not in _OWN and k != "self"}}
        )
    known = set(database.series())
    for name in rows.series:
        if name not in known:
            database.add_series(name)
    if rows.cut is not None:
        database.delete_steps(rows.cut, database.series())
    database.put_rows("event", rows.events)
    for chunk in rows.chunks:
        database.put_chunk(chunk.row, dict(zip(rows.series, chunk.values, strict=True)))
    database.put_rows("summary", rows.summaries)
    database.put_rows("sample", rows.samples)
    database.delete_diagnostics_named(rows.gone_diagnostics)
    database.put_rows("diagnostics", rows.diagnostics)
    if rows.media_ids is not None:
        database.keep_media(rows.media_ids)
    database.put_rows("media", rows.media)


def _cut(database: RunDatabase, position: Position) -> int | None:
    """The step from which on steps that the copy has were deleted; those before it are there unchanged."""
    if not position.chunk:
        return None
    stop = database.stop_until(position.chunk)
    return stop if stop < position.stop else None


class _Budget:
    """The bytes that may still be read; while some are left, one more row is."""

    def __init__(self, size: int) -> None:
        self._left, self.is_exceeded = size, False

    def of(
        self, rows: Iterable[T], size: Callable[[Any], int] = _size, group: Callable[[T], object] = id
    ) -> tuple[T, ...]:
        """As many of some rows as may be read, and rows of one group together."""
        found: list[T] = []
        for row in rows:
            if self._left <= 0 and (not found or group(row) != group(found[-1])):
                self.is_exceeded = True
                break
            self._left -= size(row)
            found.append(row)
        return tuple(found)
