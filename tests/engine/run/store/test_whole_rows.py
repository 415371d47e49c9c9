"""Which rows of a run's database count as whole."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from accel_engine.run.store.database import TABLES, Database
from accel_engine.run.store.whole_rows import MAX_NAME, MAX_STEP, MAX_TEXT, MAX_TIME, source

WHOLE: dict[str, dict[str, Any]] = {
    "meta": {"key": "plan", "value": 1},
    "event": {"id": 1, "time": 1.5, "kind": "warned", "body": "{}"},
    "chunk": {"id": 1, "first_step": 7, "count": 2, "started": 1.5, "ended": 2, "loss": bytes(8)},
    "sample": {"id": 1, "time": 1.5, "device": "cpu:0", "readings": "{}"},
    "command": {"id": 1, "time": 1.5, "who": "ann", "name": "stop"},
    "summary": {"level": 0, "first_step": 4096, "series": "loss", "buckets": bytes(1280)},
    "inside": {"name": "layers", "time": 1.5, "step": 3, "head": "{}", "body": b""},
    "media": {"id": 1, "kind": "text", "name": "a", "step": 3, "time": 1.5, "head": "{}", "body": b""},
}
ANSWERED = {"answered": 2.5, "obeyed": 1, "answer": "stopping"}
TIMES = ({"time": 0}, {"time": MAX_TIME})
NO_TIMES = ({"time": -0.5}, {"time": MAX_TIME + 1}, {"time": "now"}, {"time": b"now"})


NAMES = (
    ("event", "kind"),
    ("sample", "device"),
    ("summary", "series"),
    ("inside", "name"),
    ("media", "kind"),
    ("media", "name"),
)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    """An empty database with a series."""
    with closing(sqlite3.connect(":memory:", factory=Database)) as database:
        database.executescript(TABLES)
        for name in ("loss", "accuracy"):
            database.execute(f"ALTER TABLE chunk ADD COLUMN {name} BLOB")
        yield database


def count_whole(
    database: sqlite3.Connection, table: str, changes: dict[str, Any], series: tuple[str, ...] = ("loss", "accuracy")
) -> int:
    row = WHOLE[table] | changes
    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", (*row.values(),))
    found = database.execute(f"SELECT count(*) FROM {source(table, series)}").fetchone()
    return int(found[0])


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        *((table, {}) for table in WHOLE),
        *((table, time) for table in ("event", "sample", "command", "inside") for time in TIMES),
        ("event", {"body": MAX_TEXT * "x"}),
        *((table, {column: MAX_NAME * "x"}) for table, column in NAMES),
        ("chunk", {"first_step": MAX_STEP - 2}),
        ("chunk", {"first_step": 0, "count": 1, "loss": bytes(4), "accuracy": bytes(4)}),
        ("chunk", {"loss": None, "accuracy": bytes(8)}),
        ("command", {"argument": 0.5}),
        ("command", {"argument": 2}),
        ("command", ANSWERED),
        ("command", ANSWERED | {"obeyed": 0}),
        ("summary", {"level": 3, "first_step": 1 << 24}),
        ("summary", {"first_step": MAX_STEP}),
        ("inside", {"step": 0}),
        ("inside", {"step": MAX_STEP}),
        ("media", {"step": 0}),
        ("media", {"step": 1 << 62}),
    ],
)
def test_what_engines_write_is_whole(database: sqlite3.Connection, table: str, changes: dict[str, Any]) -> None:
    assert count_whole(database, table, changes) == 1


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("meta", {"key": b"plan"}),
        *((table, {"id": number}) for table in ("event", "chunk", "sample", "command", "media") for number in (0, -1)),
        *((table, time) for table in ("event", "sample", "command", "inside") for time in NO_TIMES),
        ("event", {"kind": b"warned"}),
        ("event", {"body": (MAX_TEXT + 1) * "x"}),
        *((table, {column: (MAX_NAME + 1) * "x"}) for table, column in NAMES),
        ("event", {"body": b"{}"}),
        ("chunk", {"first_step": MAX_STEP - 1}),
        ("chunk", {"first_step": -1}),
        ("chunk", {"first_step": 1.5}),
        ("chunk", {"count": 0, "loss": b""}),
        ("chunk", {"count": 1}),
        ("chunk", {"count": 1 << 40}),
        ("chunk", {"started": -1}),
        ("chunk", {"ended": "x"}),
        ("chunk", {"loss": None}),
        ("chunk", {"accuracy": bytes(7)}),
        ("chunk", {"accuracy": "12345678"}),
        ("sample", {"device": b"cpu:0"}),
        ("sample", {"readings": b"{}"}),
        ("command", {"who": b"ann"}),
        ("command", {"name": b"stop"}),
        ("command", {"argument": "fast"}),
        *(("command", ANSWERED | changes) for changes in ({"obeyed": 2}, {"obeyed": None}, {"answer": None})),
        ("command", ANSWERED | {"answered": -1}),
        ("summary", {"level": 4, "first_step": 0}),
        ("summary", {"level": -1}),
        ("summary", {"level": 1}),
        ("summary", {"first_step": MAX_STEP + 4096}),
        ("summary", {"series": b"loss"}),
        ("summary", {"buckets": bytes(1279)}),
        ("summary", {"buckets": 1280 * "x"}),
        ("inside", {"name": b"layers"}),
        ("inside", {"step": MAX_STEP + 1}),
        ("inside", {"step": -1}),
        ("inside", {"head": b"{}"}),
        ("inside", {"body": "x"}),
        ("media", {"kind": b"text"}),
        ("media", {"name": b"a"}),
        ("media", {"step": -1}),
        ("media", {"step": (1 << 62) + 1}),
    ],
)
def test_what_no_engine_writes_is_not(database: sqlite3.Connection, table: str, changes: dict[str, Any]) -> None:
    assert count_whole(database, table, changes) == 0


def test_steps_without_a_series_are_not_whole(database: sqlite3.Connection) -> None:
    assert count_whole(database, "chunk", {}, series=()) == 0


def test_a_run_may_have_very_many_series(database: sqlite3.Connection) -> None:
    names = ("loss", *(f"series_{number}" for number in range(1200)))  # more than an expression of SQL has terms
    database.execute("DROP TABLE chunk")
    database.execute(f"CREATE TABLE chunk (id, first_step, count, started, ended, {', '.join(names)})")
    assert count_whole(database, "chunk", {names[-1]: bytes(8)}, series=names) == 1
    assert count_whole(database, "chunk", {"id": 2, names[-1]: bytes(7)}, series=names) == 1
    assert count_whole(database, "chunk", {"id": 3, "loss": bytes(7)}, series=names) == 1
