"""The database of a run, ``run.db``, and every query of it, by table.

Steps are stored by chunk, with a packed little-endian float32 column per series: a million steps are written in about
half a second and read in milliseconds; with a row per step, reading takes a second.
"""

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import astuple

from accel_engine.errors import DatabaseError, RunError
from accel_engine.run.directory.run_paths import host_of_run, repair_command
from accel_engine.run.store import schema
from accel_engine.run.store.read_only_file import ReadOnlyFile
from accel_engine.versioned_database import CommandDatabase, DatabaseRow, Time, connect, convert_row, create_database

SCHEMA_VERSION = 5
"""The version of the format; see *Compatibility* in ``CONTRIBUTING.md``. Versions 1 to 3 were never released."""

DATABASE = "run.db"

_ALL = -1  # as a limit

_EARLIER_PHASES = (
    "AND (kind != 'phase_changed' OR id = (SELECT id FROM event WHERE kind = 'phase_changed' ORDER BY id DESC LIMIT 1))"
)


class MediaSeriesRow(DatabaseRow, frozen=True):
    """A series of logged items: the items of one kind and name."""

    kind: schema.Name
    name: schema.Name
    count: int
    first_step: int
    last_step: int
    last_id: int


class _Time(DatabaseRow, frozen=True):
    name: schema.Name
    time: Time


class _End(DatabaseRow, frozen=True):
    first_step: schema.Step


class _MediaStep(DatabaseRow, frozen=True):
    step: Annotated[int, msgspec.Meta(ge=0)]


class RunDatabase(CommandDatabase):
    """A run's database.

    Args:
        directory: The run's directory.
        read_only: Whether nothing is written; it can then be on a full disk, or another user's.

    Attributes:
        directory: The run's directory.
        file: Device and inode of its file.

    Raises:
        RunError: There is no run, it is damaged, or it has another version of the format. All methods raise it, too.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        if not (directory / DATABASE).is_file():
            raise RunError(f"no run in {directory}")
        self.directory = directory
        self.file = (0, 0)
        self._read_only: ReadOnlyFile | None = None
        if host := host_of_run(directory):
            cure = f"It is a copy of a run of {host}: delete {directory}, and it is copied again"
        else:
            cure = f"Save what is whole: {repair_command(directory)}"
        super().__init__(directory / DATABASE, f"run {directory.name}", SCHEMA_VERSION, cure=cure, read_only=read_only)

    def _connect(self, *, read_only: bool) -> sqlite3.Connection:
        self._read_only = ReadOnlyFile(self.path) if read_only else None
        connection = self._read_only.connection if self._read_only else connect(self.path)
        file = os.stat(self.path)
        self.file = (file.st_dev, file.st_ino)
        return connection

    def close(self) -> None:
        """Close the database."""
        super().close()
        if self._read_only:
            self._read_only.close()

    def is_current(self) -> bool:
        """Whether it is still the one in its directory."""
        try:
            file = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # a network that does not answer, for example
            return True
        return (file.st_dev, file.st_ino) == self.file

    def is_outdated(self) -> bool:
        """Whether the file has changed, and this connection cannot see it."""
        return self._read_only is not None and self._read_only.is_outdated()

    def check_unchanged(self) -> None:
        """Check that the file of a connection that sees no changes has not changed while it was read.

        Raises:
            DatabaseError: The file has changed.
        """
        if self.is_outdated():
            raise DatabaseError(f"run {self.directory.name} was written while it was read: try again")

    # meta

    def meta_rows(self) -> Iterator[schema.MetaRow]:
        """All values by key."""
        return self.rows("meta", schema.MetaRow)

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
        self, after: int = 0, limit: int = _ALL, *, kinds: Collection[str] = (), past_phases: bool = True
    ) -> Iterator[schema.EventRow]:
        """The events after an id, oldest first.

        Args:
            after: The id.
            limit: Maximum number of events; -1 for all.
            kinds: Kinds to read; all by default.
            past_phases: Whether to read phases that another phase has followed.
        """
        condition = f"AND kind IN ({_marks(kinds)})" if kinds else "" if past_phases else _EARLIER_PHASES
        return self.rows(
            "event", schema.EventRow, f"WHERE id > ? {condition} ORDER BY id LIMIT ?", (after, *kinds, limit)
        )

    def last_event(self, kinds: Collection[str]) -> schema.EventRow | None:
        """The last event of any of these kinds; ``None`` if there is none."""
        return self.row("event", schema.EventRow, f"WHERE kind IN ({_marks(kinds)}) ORDER BY id DESC", tuple(kinds))

    def last_event_before(self, before: int) -> schema.EventRow | None:
        """The last event before an id; ``None`` if there is none."""
        return self.row("event", schema.EventRow, "WHERE id < ? ORDER BY id DESC", (before,))

    def first_time(self) -> float:
        """The time of the first event; 0 if there is none."""
        first = next(self.events(limit=1), None)
        return first.time if first else 0.0

    # chunk

    def series(self) -> tuple[str, ...]:
        """Names of the per-step series."""
        return tuple(filter(schema.is_series, self.columns("chunk")))

    def add_series(self, name: str) -> None:
        """Add a column for a series.

        Raises:
            ValueError: No series can have that name.
        """
        if not schema.is_series(name):
            raise ValueError(f"{name!r} is not a valid series name")
        self.execute(f'ALTER TABLE chunk ADD COLUMN "{name}" BLOB')

    def add_chunk(self, first_step: int, count: int, started: float, ended: float, series: Mapping[str, bytes]) -> None:
        """Add a chunk, with the packed values of each series."""
        self.execute(
            f"INSERT INTO chunk (first_step, count, started, ended{_listed(series)}) "
            f"VALUES ({_marks(range(4 + len(series)))})",
            (first_step, count, started, ended, *series.values()),
        )

    def chunks(self, series: Collection[str], after: int = 0, limit: int = _ALL) -> list[schema.StoredChunk]:
        """Up to ``limit`` chunks after an id, oldest first, with the values of ``series``: all series of the run."""
        return list(self._chunks(series, "WHERE id > ? ORDER BY id LIMIT ?", after, limit, has_all_series=True))

    def new_chunks(self, series: Collection[str], after: int) -> Iterator[schema.StoredChunk]:
        """The chunks after an id, oldest first, with the values of ``series``: all series of the run."""
        return self._chunks(series, "WHERE id > ? ORDER BY id", after, has_all_series=True)

    def put_chunk(self, chunk: schema.ChunkRow, series: Mapping[str, bytes | None]) -> None:
        """Write a chunk with its id, in place of the one that has it."""
        columns = (*schema.FIXED_CHUNK_COLUMNS, *series)
        self.execute(
            f"INSERT OR REPLACE INTO chunk ({_listed(columns)[2:]}) VALUES ({_marks(columns)})",
            (*(getattr(chunk, name) for name in schema.FIXED_CHUNK_COLUMNS), *series.values()),
        )

    def stop_until(self, last: int) -> int:
        """The step after the last chunk up to an id; 0 if there is none."""
        chunk = self.row("chunk", schema.ChunkRow, "WHERE id <= ? ORDER BY id DESC", (last,))
        return chunk.stop if chunk else 0

    def chunks_between(self, first: int, last: int, series: Collection[str]) -> list[schema.StoredChunk]:
        """The chunks with steps from ``first`` to before ``last``, and the one before if ``first`` is in a gap."""
        condition = (
            "WHERE first_step < ? AND first_step >= "
            "coalesce((SELECT max(first_step) FROM chunk WHERE first_step <= ?), 0) ORDER BY first_step"
        )
        return list(self._chunks(series, condition, last, first))

    def latest_values(self, name: str, limit: int, first: int = 0) -> Iterator[bytes]:
        """The packed values of a series in each of the last ``limit`` chunks that have it, newest first.

        Args:
            name: The series.
            limit: Maximum number of chunks.
            first: The least first step of a chunk.
        """
        condition = f'WHERE "{name}" NOT NULL AND first_step >= ? ORDER BY id DESC LIMIT ?'
        rows = self._chunks([name], condition, first, limit)
        return (packed for row in rows for packed in row.series if packed)

    def _chunks(
        self, series: Collection[str], condition: str, *values: int, has_all_series: bool = False
    ) -> Iterator[schema.StoredChunk]:
        columns = f"{', '.join(schema.FIXED_CHUNK_COLUMNS)}{_listed(series)}"
        for row in self.query(f"SELECT {columns} FROM chunk {condition}", values):
            yield self.decode("chunk", row[0], schema.decode_chunk, row, has_all_series)

    def first_chunk_after(self, time: float) -> float | None:
        """When the first chunk began from a time on, in seconds since the epoch; ``None`` without one."""
        return next((row[0] for row in self.query("SELECT min(started) FROM chunk WHERE started >= ?", (time,))), None)

    def chunk_places(self, after: int = 0) -> Iterator[schema.ChunkRow]:
        """The chunks after an id, oldest first, without their values."""
        return self.new_rows("chunk", schema.ChunkRow, after)

    def chunk_from_end(self, offset: int = 0) -> tuple[int, int]:
        """Id of the last chunk, or of one before it, and the step after it; zeros if there is none."""
        chunk = self.row("chunk", schema.ChunkRow, "ORDER BY id DESC LIMIT 1 OFFSET ?", (offset,))
        return (chunk.id, chunk.stop) if chunk else (0, 0)

    def end_before(self, step: int, default: float) -> float:
        """End time of the last chunk that begins before a step; ``default`` without one."""
        chunk = self.row("chunk", schema.ChunkRow, "WHERE first_step < ? ORDER BY first_step DESC", (step,))
        return chunk.ended if chunk else default

    def step_from(self, step: int) -> int:
        """The first recorded step from a step on; the step itself if there is none.

        If damaged chunks overlap, it may be a step that none of them has.
        """
        chunk = self.row("chunk", schema.ChunkRow, "WHERE first_step <= ? ORDER BY first_step DESC", (step,))
        if chunk and chunk.stop > step:
            return step
        later = self.row("chunk", schema.ChunkRow, "WHERE first_step > ? ORDER BY first_step", (step,))
        return later.first_step if later else step

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

    # any table

    def put_rows(self, table: str, rows: Sequence[DatabaseRow]) -> None:
        """Write rows with their ids, in place of those that have them."""
        if rows:
            columns = rows[0].__struct_fields__
            query = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({_marks(columns)})"
            self.execute_many(query, map(astuple, rows))

    # summary

    def add_summary(self, rows: Iterable[tuple[int, int, str, bytes]]) -> None:
        """Add rows: level, first step, series and packed buckets."""
        self.execute_many("INSERT INTO summary VALUES (?, ?, ?, ?)", rows)

    def summary(self, level: int, first: int, last: int, series: Collection[str]) -> Iterator[schema.SummaryRow]:
        """The rows of a level that begin from ``first`` to before ``last``."""
        condition = f"WHERE level = ? AND first_step >= ? AND first_step < ? AND series IN ({_marks(series)})"
        return self.rows("summary", schema.SummaryRow, condition, (level, first, last, *series))

    def summary_after(self, level: int, first: int) -> Iterator[schema.SummaryRow]:
        """The rows of a level that begin from ``first`` on, in order."""
        return self.rows(
            "summary", schema.SummaryRow, "WHERE level = ? AND first_step >= ? ORDER BY first_step", (level, first)
        )

    def summary_end(self, level: int) -> int:
        """The step after the last row of a level; 0 if it has none."""
        last = self.row("summary", _End, "WHERE level = ? ORDER BY first_step DESC", (level,))
        return last.first_step + schema.SPANS[level] if last else 0

    # sample

    def add_samples(self, rows: Iterable[tuple[float, str, str]]) -> None:
        """Add rows: time, device and packed readings."""
        self.execute_many("INSERT INTO sample (time, device, readings) VALUES (?, ?, ?)", rows)

    def samples(self, after: int = 0, limit: int = _ALL) -> list[schema.SampleRow]:
        """Up to ``limit`` samples after an id, oldest first."""
        return list(self.new_rows("sample", schema.SampleRow, after, limit))

    def latest_samples(self, after: int, limit: int) -> list[schema.SampleRow]:
        """The last ``limit`` samples after an id, oldest first."""
        return [*self.rows("sample", schema.SampleRow, "WHERE id > ? ORDER BY id DESC LIMIT ?", (after, limit))][::-1]

    # diagnostics

    def set_diagnostics(self, name: str, time: float, step: int, head: str, body: bytes) -> None:
        """Write a row of diagnostics in place of the one with its name."""
        self.execute("INSERT OR REPLACE INTO diagnostics VALUES (?, ?, ?, ?, ?)", (name, time, step, head, body))

    def diagnostics(self) -> list[schema.DiagnosticsRow]:
        """The diagnostics by name."""
        return list(self.rows("diagnostics", schema.DiagnosticsRow, "ORDER BY name"))

    def diagnostics_by_time(self) -> dict[str, float]:
        """When each row of diagnostics was written, by name."""
        return {row.name: row.time for row in self.rows("diagnostics", _Time, "ORDER BY name")}

    def changed_diagnostics(self, times: Mapping[str, float]) -> Iterator[schema.DiagnosticsRow]:
        """The diagnostics that were not written at these times, by name."""
        for name, time in self.diagnostics_by_time().items():
            row = (
                self.row("diagnostics", schema.DiagnosticsRow, "WHERE name = ?", (name,))
                if times.get(name) != time
                else None
            )
            if row:
                yield row

    def delete_diagnostics_named(self, names: Iterable[str]) -> None:
        """Delete the diagnostics with these names, at any step."""
        self.execute_many("DELETE FROM diagnostics WHERE name = ?", [(name,) for name in names])

    def delete_diagnostics(self, step: int) -> None:
        """Delete the diagnostics of later steps."""
        self.execute("DELETE FROM diagnostics WHERE step > ?", (step,))

    # media

    def set_media(self, kind: str, name: str, step: int, time: float, head: str, body: bytes) -> None:
        """Write an item in place of the one of its kind, name and step."""
        query = "INSERT OR REPLACE INTO media (kind, name, step, time, head, body) VALUES (?, ?, ?, ?, ?, ?)"
        self.execute(query, (kind, name, step, time, head, body))

    def media_series(self) -> list[MediaSeriesRow]:
        """Each series; read from an index alone."""
        columns = "kind, name, count(*), min(step), max(step), max(id)"
        rows = self.query(f"SELECT {columns} FROM media GROUP BY kind, name")
        return [self.decode("media", row[1], convert_row, row, MediaSeriesRow) for row in rows]

    def media_steps(self, kind: str, name: str) -> list[int]:
        """The steps of a series, in order."""
        found = self.rows("media", _MediaStep, "WHERE kind = ? AND name = ? ORDER BY step", (kind, name))
        return [row.step for row in found]

    def media(self, kind: str, name: str, step: int) -> schema.MediaRow | None:
        """The newest item of a series up to a step; ``None`` if there is none."""
        condition = "WHERE kind = ? AND name = ? AND step <= ? ORDER BY step DESC"
        return self.row("media", schema.MediaRow, condition, (kind, name, step))

    def media_after(self, after: int) -> Iterator[schema.MediaRow]:
        """The items after an id, in the order in which they were added."""
        while row := self.row("media", schema.MediaRow, "WHERE id > ? ORDER BY id", (after,)):  # each may be megabytes
            after = row.id
            yield row

    def media_count(self, last: int = (1 << 63) - 1) -> int:
        """Number of items up to an id."""
        return int(self.value("SELECT count(*) FROM media WHERE id <= ?", (last,)))

    def media_ids(self, last: int) -> Iterator[int]:
        """The ids of the items up to one, in order."""
        return (row[0] for row in self.query("SELECT id FROM media WHERE id <= ? ORDER BY id", (last,)))

    def keep_media(self, ids: Collection[int]) -> None:
        """Delete all items but some."""
        kept = set(ids)
        gone = [(number,) for number in self.media_ids(self.last_id("media")) if number not in kept]
        self.execute_many("DELETE FROM media WHERE id = ?", gone)

    def media_bytes(self) -> int:
        """Bytes of all bodies."""
        return int(self.value("SELECT coalesce(sum(length(body)), 0) FROM media"))

    def delete_media(self, step: int) -> None:
        """Delete the items of later steps."""
        self.execute("DELETE FROM media WHERE step > ?", (step,))


def create_file(path: Path, **meta: object) -> None:
    """Create the database of a run, complete and closed, which only its owner can read.

    Args:
        path: Its file.
        meta: Rows of ``meta``.
    """
    create_database(path, schema.TABLES, schema=SCHEMA_VERSION, **meta)


@contextmanager
def reading(directory: Path) -> Iterator[RunDatabase]:
    """Open a run's database for the queries of a block.

    Raises:
        RunError: There is no run, or it cannot be read.
    """
    with closing(RunDatabase(directory, read_only=True)) as database:
        yield database
        database.check_unchanged()


@contextmanager
def writing(directory: Path) -> Iterator[RunDatabase]:
    """Open a run's database for one transaction, in a process that is not the run's engine.

    Raises:
        RunError: There is no run, or it cannot be written.
    """
    try:
        with closing(RunDatabase(directory)) as database, database.transaction():
            yield database
    except DatabaseError as error:  # of SQLite, which does not say which file it cannot create
        try:
            check_writable(directory)
        except RunError as reason:
            raise DatabaseError(str(reason)) from error
        raise


def check_writable(directory: Path, *others: Path) -> None:
    """Check that a run can be changed: SQLite creates files in its directory, too.

    Args:
        directory: The run's directory.
        others: What else is to be written.

    Raises:
        RunError: Its directory, its database, or one of the others cannot be written.
    """
    for path in (directory, directory / DATABASE, *others):
        if path.exists() and not os.access(path, os.W_OK):
            # On a disk that is mounted read-only, nobody can.
            why = "read-only disk" if os.statvfs(path).f_flag & os.ST_RDONLY else "permission denied"
            raise RunError(f"run {directory.name} cannot be changed: {path} cannot be written ({why})")


def _marks(values: Collection[object]) -> str:
    """A placeholder for each value."""
    return ", ".join("?" * len(values))


def _listed(columns: Iterable[str]) -> str:
    """Names of columns, each after a comma."""
    return "".join(f', "{name}"' for name in columns)
