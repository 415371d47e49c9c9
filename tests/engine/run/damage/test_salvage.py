"""Rows that SQLite can still reach in a damaged file."""

import errno
import os
import sqlite3
from collections.abc import Container, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

import damaged_runs
from accel_engine.errors import RunError
from accel_engine.run.damage import salvage
from accel_engine.run.damage.salvage import DamagedFile, damaged_file
from accel_engine.run.store.database import DATABASE


class Damaged:
    """A connection to a table of which some rows cannot be read.

    Attributes:
        reads: Ranges of ids that were read.
    """

    def __init__(self, last: int, damaged: Container[int]) -> None:
        self._last, self._damaged = last, damaged
        self.reads: list[tuple[int, int]] = []

    def execute(self, query: str, values: tuple[int, int] = (0, 0)) -> Any:
        if query.startswith("SELECT max(rowid)"):
            return Row(self._last)
        self.reads.append(values)
        return self._rows(*values)

    def _rows(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        for number in range(first, last + 1):
            if number in self._damaged:
                raise sqlite3.DatabaseError("database disk image is malformed")
            yield number, f"row {number}"


class Row:
    """The only row of a result."""

    def __init__(self, value: object) -> None:
        self._value = value

    def fetchone(self) -> tuple[object]:
        return (self._value,)


def read(last: int, damaged: Container[int]) -> tuple[list[int], int, int]:
    """The ids of the rows that were read, how many could not be, and how many reads that took."""
    database, unreadable = Damaged(last, damaged), [0]
    file = DamagedFile(cast("sqlite3.Connection", database), 0)
    rows = [int(text.removeprefix("row ")) for (text,) in file.rows("event", ["body"], unreadable)]
    return rows, unreadable[0], len(database.reads)


@pytest.mark.parametrize(
    "damaged", [set(), {1}, {100}, {7, 8}, {1, 50, 51, 99}, set(range(40, 60)), set(range(1, 101))]
)
def test_all_rows_but_the_damaged_ones_are_read_once(damaged: set[int]) -> None:
    rows, unreadable, reads = read(100, damaged)
    assert sorted(rows) == [number for number in range(1, 101) if number not in damaged]
    assert unreadable == len(damaged)
    assert reads <= 1 + 14 * len(damaged)  # two halves for each halving of a hundred


def test_reading_ends_after_very_many_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvage, "_MAX_FAILURES", 20)
    rows, unreadable, reads = read(1_000_000, range(1, 1_000_001))
    assert (rows, unreadable) == ([], 1_000_000)
    assert reads <= 50


def test_a_damaged_table_has_as_many_ids_as_sqlite_has_given(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        file = DamagedFile(database, 160)
        assert file._last_id("event") == 10  # as many rows as may be in a file of that size
        database.execute("CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, body)")
        database.execute("INSERT INTO event VALUES (3, 'a')")
        assert file._last_id("event") == 3
        database.execute("UPDATE sqlite_sequence SET seq = 5")
        database.execute("DELETE FROM event")
        assert file._last_id("event") == 5


def test_what_is_missing_has_no_columns_values_or_rows(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        file, unreadable = DamagedFile(database, 1600), [0]
        assert file.columns("event") == []
        assert file.value("meta", ("value",), "plan") is None
        assert list(file.rows("event", ["body"], unreadable)) == []
        assert unreadable == [0]


def test_what_cannot_be_read_is_not_said_to_be_missing(tmp_path: Path) -> None:
    run = damaged_runs.record()
    damaged_runs.overwrite_root(run, "meta")
    with damaged_file(run, tmp_path) as file:
        assert file.columns("meta") == ["key", "value"]
        with pytest.raises(sqlite3.DatabaseError):
            file.value("meta", ("value",), "note")


def test_an_error_that_is_no_missing_table_counts_the_rows() -> None:
    class Failing(Damaged):
        def _rows(self, first: int, last: int) -> Iterator[tuple[int, str]]:
            raise sqlite3.OperationalError("disk I/O error")

    unreadable = [0]
    file = DamagedFile(cast("sqlite3.Connection", Failing(10, ())), 0)
    assert list(file.rows("event", ["body"], unreadable)) == []
    assert unreadable == [10]


def test_a_run_is_read_from_a_copy(tmp_path: Path) -> None:
    run = damaged_runs.record()
    before = {path: path.read_bytes() for path in run.iterdir()}
    with damaged_file(run, tmp_path) as file:
        assert file.columns("meta") == ["key", "value"]
        assert file.value("meta", ("value",), "note") == ("a note",)
        assert file.value("meta", ("value",), "missing") is None
        assert len(list(file.rows("sample", ["time"], [0]))) == 40
        assert file.most_rows == (tmp_path / DATABASE).stat().st_size // 16
    assert {path: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize("lost", [0, 100])
def test_the_log_of_a_file_is_read_also_if_its_header_is_lost(tmp_path: Path, lost: int) -> None:
    run = damaged_runs.record()
    with closing(sqlite3.connect(run / DATABASE, isolation_level=None)) as writer:
        writer.execute("UPDATE meta SET value = 'another note' WHERE key = 'note'")
        copy = damaged_runs.copied(run, tmp_path / "copy")
    damaged_runs.overwrite(copy, 0, bytes(lost))
    (tmp_path / "folder").mkdir()
    with damaged_file(copy, tmp_path / "folder") as file:
        assert file.value("meta", ("value",), "note") == ("another note",)


def test_a_log_with_which_a_file_cannot_be_opened_is_left_out(tmp_path: Path) -> None:
    run, other = damaged_runs.record(), tmp_path / "other.db"
    with closing(sqlite3.connect(other, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        for number in range(100):  # more tables than the first page has room for
            writer.execute(f"CREATE TABLE t{number} (a, b, c)")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.execute("PRAGMA user_version = 1")  # the log has the first page only
        (run / f"{DATABASE}-wal").write_bytes(Path(f"{other}-wal").read_bytes())
    (tmp_path / "folder").mkdir()
    with damaged_file(run, tmp_path / "folder") as file:
        assert file.value("meta", ("value",), "note") == ("a note",)


def test_what_can_be_read_is_copied_and_the_rest_is_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = damaged_runs.record(), os.pread

    def fail(file: int, length: int, start: int) -> bytes:
        if start == 4096 * 4:
            raise OSError(errno.EIO, "Input/output error")
        return read(file, length, start)

    monkeypatch.setattr(os, "pread", fail)
    with damaged_file(run, tmp_path) as file:
        assert file.value("meta", ("value",), "note") == ("a note",)
        whole = bytearray((run / DATABASE).read_bytes())
        whole[4096 * 4 : 4096 * 5] = bytes(4096)
        assert (tmp_path / DATABASE).read_bytes() == whole


def test_a_run_that_cannot_be_copied_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match=r"run gone cannot be copied: No such file"),
        damaged_file(tmp_path / "gone", tmp_path),
    ):
        pass
