"""Every query of ``run.db``, by table.

SQLite in WAL mode lets one engine write while any number of dashboards read. Steps are stored by
chunk, with a packed little-endian float32 column per series: a million steps are written in about
half a second and read in milliseconds; with a row per step, reading takes a second.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from accel_engine.run.store.schema import SPANS, TABLES, is_series
from accel_engine.run.store.table_connection import Row, TableConnection, listed, marks

_LAST_ID = (1 << 63) - 1
"""No id is larger."""

_EVENTS = "SELECT id, kind, time, body FROM event WHERE id > ? {} ORDER BY id LIMIT ?"
_LAST_PHASE = """
AND (kind != 'phase_changed' OR id = (SELECT id FROM event WHERE kind = 'phase_changed' ORDER BY id DESC LIMIT 1))
"""

_ENGINES = """
SELECT time,
    (SELECT max(time) FROM event WHERE id >= first AND id < next),
    (SELECT min(id) FROM event WHERE kind = 'run_ended' AND id > first AND id < next)
FROM (
    SELECT id AS first, time, lead(id, 1, 1 << 62) OVER (ORDER BY id) AS next FROM event WHERE kind = 'run_started'
) ORDER BY first
"""


class Database(TableConnection):
    """A run's database; :func:`accel_engine.run.store.connection.connect` opens it.

    Methods raise :exc:`sqlite3.Error`, which :mod:`accel_engine.run.store.connection` translates.
    """

    # meta

    def create(self, **meta: object) -> None:
        """Create all tables in an empty file that nobody else has opened, and set keys of ``meta``."""
        # WAL comes last: closing a database copies its WAL into the file, and reports no error of that.
        self.execute("PRAGMA journal_mode = MEMORY").fetchone()
        self.executescript(f"BEGIN; {TABLES}")
        self.set_meta(**meta)
        self.execute("COMMIT")
        self.execute("PRAGMA journal_mode = WAL").fetchone()  # stays a rollback journal where WAL is refused

    def set_meta(self, **values: object) -> None:
        """Set keys; ``None`` removes a key."""
        for key, value in values.items():
            if value is None:
                self.execute("DELETE FROM main.meta WHERE key = ?", (key,))
            else:
                self.execute("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", (key, value))

    def meta(self) -> sqlite3.Cursor:
        """Each key, twice, and its value."""
        return self.query("SELECT key, key, value FROM meta")

    def schema(self) -> Any:
        """The version of the format; ``None`` if there is none."""
        return (self.execute("SELECT value FROM main.meta WHERE key = 'schema'").fetchone() or (None,))[0]

    def beat(self, process: str, heartbeat: float, written: float) -> bool:
        """Write a heartbeat; returns whether the run is still ``process``'s."""
        return bool(
            self.query(
                "UPDATE main.meta SET value = CASE key WHEN 'heartbeat' THEN ? ELSE ? END "
                "WHERE key IN ('heartbeat', 'written') AND EXISTS "
                "(SELECT 1 FROM meta WHERE key = 'process' AND value = ?)",
                (heartbeat, written, process),
            ).rowcount
        )

    # event

    def add_event(self, time: float, kind: str, body: str) -> None:
        """Add an event in its stored form."""
        self.execute("INSERT INTO main.event (time, kind, body) VALUES (?, ?, ?)", (time, kind, body))

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
        condition = f"AND kind IN ({marks(kinds)})" if kinds else "" if past_phases else _LAST_PHASE
        return self.query(_EVENTS.format(condition), (after, *kinds, limit))

    def latest_events(self, *kinds: str) -> Iterator[Row]:
        """Id, kind, time and body of the events of any of these kinds, newest first, each searched when it is taken."""
        last = _LAST_ID
        query = f"SELECT id, kind, time, body FROM event WHERE id <= ? AND kind IN ({marks(kinds)})"
        while row := self.query(f"{query} ORDER BY id DESC LIMIT 1", (last, *kinds)).fetchone():
            last = row[0] - 1
            yield row

    def last_kind(self) -> object:
        """The kind of the last event, also of a damaged one; ``None`` if there is none."""
        return (self.execute("SELECT kind FROM main.event ORDER BY id DESC LIMIT 1").fetchone() or (None,))[0]

    def first_time(self) -> float:
        """The time of the first event; 0 if there is none."""
        return float((self.query("SELECT time FROM event ORDER BY id LIMIT 1").fetchone() or (0.0,))[0])

    def engines(self) -> list[tuple[float, float, int | None]]:
        """For each engine of the run: start time, time of its last event, and id of its ``run_ended``."""
        return self.query(_ENGINES).fetchall()

    # chunk

    def add_series(self, name: str) -> None:
        """Add a column for a series.

        Raises:
            ValueError: No series can have that name.
        """
        if not is_series(name):
            raise ValueError(f"{name!r} is not a valid series name")
        self.execute(f'ALTER TABLE main.chunk ADD COLUMN "{name}" BLOB')
        self.forget_schema()

    def add_chunk(self, first_step: int, count: int, started: float, ended: float, series: Mapping[str, bytes]) -> None:
        """Add a chunk, with the packed values of each series."""
        self.execute(
            f"INSERT INTO main.chunk (first_step, count, started, ended{listed(series)}) "
            f"VALUES ({marks(range(4 + len(series)))})",
            (first_step, count, started, ended, *series.values()),
        )

    def chunks(self, after: int, limit: int = -1) -> tuple[tuple[str, ...], list[Row]]:
        """The names of all series, and the rows of up to ``limit`` chunks after an id, oldest first."""
        names = self.series()
        query = (
            f"SELECT id, first_step, count, started, ended{listed(names)} FROM chunk WHERE id > ? ORDER BY id LIMIT ?"
        )
        return names, self.query(query, (after, limit)).fetchall()

    def latest_values(self, name: str, limit: int) -> Iterator[bytes]:
        """The packed values of a series in each of the last ``limit`` chunks that have it, newest first."""
        query = f'SELECT "{name}" FROM chunk WHERE typeof("{name}") = \'blob\' ORDER BY id DESC LIMIT ?'
        for (packed,) in self.query(query, (limit,)):
            yield packed[: len(packed) // 4 * 4]

    def chunks_between(self, first: int, last: int, series: Collection[str]) -> list[Row]:
        """First step, count, start, end and ``series`` of the chunks with a step from ``first`` to before ``last``."""
        return self.query(
            f"SELECT first_step, count, started, ended{listed(series)} FROM chunk WHERE first_step < ? AND "
            "first_step >= coalesce((SELECT max(first_step) FROM chunk WHERE first_step <= ?), 0) ORDER BY first_step",
            (last, first),
        ).fetchall()

    def chunk_from_end(self, offset: int = 0) -> tuple[int, int]:
        """Id of the last chunk, or of one before it, and the step after it; zeros if there is none."""
        query = "SELECT id, first_step + count FROM chunk ORDER BY id DESC LIMIT 1 OFFSET ?"
        return self.query(query, (offset,)).fetchone() or (0, 0)

    def chunk_places(self) -> sqlite3.Cursor:
        """Id, first step and the step after the last one of each chunk, by id."""
        return self.query("SELECT id, first_step, first_step + count FROM chunk ORDER BY id")

    def first_step_after(self, chunk: int) -> int:
        """The smallest first step of the chunks after an id, of which there is at least one."""
        return int(self.query("SELECT min(first_step) FROM chunk WHERE id > ?", (chunk,)).fetchone()[0])

    def chunk_ends(self, after: int) -> list[tuple[float, int]]:
        """End time of each chunk after an id, and the step after it."""
        query = "SELECT ended, first_step + count FROM chunk WHERE id > ? ORDER BY id"
        return self.query(query, (after,)).fetchall()

    def end_before(self, step: int, default: float) -> float:
        """End time of the last chunk that begins before a step."""
        query = "SELECT ended FROM chunk WHERE first_step < ? ORDER BY first_step DESC LIMIT 1"
        return float((self.query(query, (step,)).fetchone() or (default,))[0])

    def step_from(self, step: int) -> int:
        """The first recorded step from a step on; the step itself if there is none.

        If damaged chunks overlap, it may be a step that none of them has.
        """
        query = "SELECT first_step + count FROM chunk WHERE first_step <= ? ORDER BY first_step DESC LIMIT 1"
        (end,) = self.query(query, (step,)).fetchone() or (0,)
        (later,) = self.query("SELECT min(first_step) FROM chunk WHERE first_step > ?", (step,)).fetchone()
        return step if end > step or later is None else int(later)

    def delete_steps(self, step: int, series: Collection[str]) -> None:
        """Delete the steps from ``step`` on, and cut the chunk that contains it."""
        self.execute("DELETE FROM main.chunk WHERE first_step >= ?", (step,))
        cuts = "".join(f', "{name}" = substr("{name}", 1, 4 * (:step - first_step))' for name in series)
        self.execute(
            "UPDATE main.chunk SET count = :step - first_step, "
            f"ended = started + (ended - started) * (:step - first_step) / count{cuts} "
            "WHERE id = :last AND first_step + count > :step",
            {"step": step, "last": self.chunk_from_end()[0]},
        )

    # summary

    def add_summary(self, rows: Iterable[tuple[int, int, str, bytes]]) -> None:
        """Add rows: level, first step, series and packed buckets."""
        self.executemany("INSERT INTO main.summary VALUES (?, ?, ?, ?)", rows)

    def summary(self, level: int, first: int, last: int, series: Collection[str]) -> sqlite3.Cursor:
        """First step, series and packed buckets of a level's rows that begin from ``first`` to before ``last``."""
        return self.query(
            "SELECT first_step, series, buckets FROM summary "
            f"WHERE level = ? AND first_step >= ? AND first_step < ? AND series IN ({marks(series)})",
            (level, first, last, *series),
        )

    def summary_end(self, level: int) -> int:
        """The step after the last row of a level; 0 if it has none."""
        (first,) = self.query("SELECT max(first_step) FROM summary WHERE level = ?", (level,)).fetchone()
        return 0 if first is None else int(first) + SPANS[level]

    # sample

    def add_samples(self, rows: Iterable[tuple[float, str, str]]) -> None:
        """Add rows: time, device and packed readings."""
        self.executemany("INSERT INTO main.sample (time, device, readings) VALUES (?, ?, ?)", rows)

    def samples(self, after: int, limit: int, *, latest: bool = False) -> list[tuple[int, float, str, str]]:
        """Id, time, device and packed readings of up to ``limit`` samples after an id, the oldest or the latest ones.

        The latest ones are in reverse order.
        """
        return self.query(
            f"SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id {'DESC' * latest} LIMIT ?",
            (after, limit),
        ).fetchall()

    # command

    def add_command(
        self, time: float, who: str, name: str, argument: float | None, reason: str = "", purpose: str = ""
    ) -> int:
        """Add a command and return its id."""
        query = "INSERT INTO main.command (time, who, name, argument, reason, purpose) VALUES (?, ?, ?, ?, ?, ?)"
        return int(self.execute(query, (time, who, name, argument, reason, purpose)).lastrowid or 0)

    def unanswered(self) -> list[tuple[int, float, str, str, float | None, str, str]]:
        """The fields of a :class:`Command` for each without an answer, oldest first."""
        columns = "id, time, who, name, argument, reason, purpose"
        query = f"SELECT {columns} FROM command WHERE answered IS NULL ORDER BY id"
        return self.query(query).fetchall()

    def answer(self, command: int, time: float, answer: str, *, obeyed: bool) -> None:
        """Answer a command."""
        query = "UPDATE main.command SET answered = ?, obeyed = ?, answer = ? WHERE id = ?"
        self.execute(query, (time, obeyed, answer, command))

    def answer_to(self, command: int) -> tuple[bool, str] | None:
        """Whether a command was carried out, and the answer; ``None`` without an answer."""
        query = "SELECT obeyed, answer FROM command WHERE id = ? AND answered IS NOT NULL"
        row = self.query(query, (command,)).fetchone()
        return (bool(row[0]), str(row[1])) if row else None

    def withdraw(self, command: int, time: float) -> bool:
        """Answer a command for its sender, so that no engine obeys it; returns whether it had no answer."""
        query = (
            "UPDATE main.command SET answered = ?, obeyed = 0, answer = 'withdrawn' WHERE id = ? AND answered IS NULL"
        )
        return bool(self.execute(query, (time, command)).rowcount)

    def reject_commands(self, time: float) -> None:
        """Reject the commands that an engine has left unanswered at its exit."""
        query = (
            "UPDATE main.command SET answered = ?, obeyed = 0, answer = 'the engine had exited' WHERE answered IS NULL"
        )
        self.execute(query, (time,))

    # inside

    def set_inside(self, name: str, time: float, step: int, head: str, body: bytes) -> None:
        """Write a row of diagnostics in place of the one with its name."""
        self.execute("INSERT OR REPLACE INTO main.inside VALUES (?, ?, ?, ?, ?)", (name, time, step, head, body))

    def inside(self) -> list[tuple[str, int, str, bytes]]:
        """Name, step, head and body of the diagnostics by name."""
        return self.query("SELECT name, step, head, body FROM inside ORDER BY name").fetchall()

    def inside_times(self) -> list[tuple[float]]:
        """When each row of diagnostics was written, by name."""
        return self.query("SELECT time FROM inside ORDER BY name").fetchall()

    def delete_inside(self, step: int) -> None:
        """Delete the diagnostics of later steps."""
        self.execute("DELETE FROM main.inside WHERE step > ?", (step,))

    # media

    def set_media(self, kind: str, name: str, step: int, time: float, head: str, body: bytes) -> None:
        """Write an item in place of the one of its kind, name and step."""
        query = "INSERT OR REPLACE INTO main.media (kind, name, step, time, head, body) VALUES (?, ?, ?, ?, ?, ?)"
        self.execute(query, (kind, name, step, time, head, body))

    def media_series(self) -> list[tuple[str, str, int, int, int, int]]:
        """Kind, name, number of items, first step, last step and last id of each series; read from an index alone."""
        return self.query(
            "SELECT kind, name, count(*), min(step), max(step), max(id) FROM media GROUP BY kind, name"
        ).fetchall()

    def media_steps(self, kind: str, name: str) -> list[int]:
        """The steps of a series, in order."""
        query = "SELECT step FROM media WHERE kind = ? AND name = ? ORDER BY step"
        return [row[0] for row in self.query(query, (kind, name))]

    def media(self, kind: str, name: str, step: int) -> tuple[int, str, bytes] | None:
        """Step, head and body of the newest item of a series up to a step."""
        query = (
            "SELECT step, head, body FROM media WHERE kind = ? AND name = ? AND step <= ? ORDER BY step DESC LIMIT 1"
        )
        row: tuple[int, str, bytes] | None = self.query(query, (kind, name, step)).fetchone()
        return row

    def media_after(self, after: int) -> sqlite3.Cursor:
        """Id, time, step, name, kind, head and body of the items after an id, in the order in which they were added."""
        query = "SELECT id, time, step, name, kind, head, body FROM media WHERE id > ? ORDER BY id"
        return self.query(query, (after,))

    def media_bytes(self) -> int:
        """Bytes of all bodies."""
        return int(self.query("SELECT coalesce(sum(length(body)), 0) FROM media").fetchone()[0])

    def delete_media(self, step: int) -> None:
        """Delete the items of later steps."""
        self.execute("DELETE FROM main.media WHERE step > ?", (step,))
