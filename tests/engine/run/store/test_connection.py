import sqlite3
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from accel_engine.errors import DatabaseError, RunError
from accel_engine.plan import Plan
from accel_engine.run import SCHEMA_VERSION, RunReader, RunWriter, create, list_runs
from accel_engine.run.store.connection import DATABASE, connect, reading
from accel_engine.run.store.database import Database
from full_disk import filled, small_disk
from recorded_run import execute


def test_runs_are_kept_in_wal_mode(directory: Path) -> None:
    with closing(connect(directory)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_directory_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run in"):
        connect(tmp_path)


def test_newer_format_is_refused_with_what_to_do(directory: Path) -> None:
    execute(directory, "UPDATE main.meta SET value = ? WHERE key = 'schema'", SCHEMA_VERSION + 1)
    for opening in (RunReader, RunWriter, connect):
        with pytest.raises(RunError, match=r"newer accel-tui.*upgrade accel-tui"):
            opening(directory)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to look at" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_file_that_is_no_database_is_an_error_in_words(directory: Path, content: bytes) -> None:
    for left in directory.glob(f"{DATABASE}-*"):
        left.unlink()
    (directory / DATABASE).write_bytes(content)
    with pytest.raises(RunError, match="cannot be read"):
        connect(directory)


@pytest.mark.parametrize(
    "change", ["DELETE FROM main.meta", "UPDATE main.meta SET value = 'abc'", "DROP TABLE main.meta"]
)
def test_database_without_a_format_version_is_an_error_in_words(directory: Path, change: str) -> None:
    with closing(sqlite3.connect(directory / DATABASE)) as connection, connection:
        connection.execute(change)
    with pytest.raises(RunError, match="cannot be read"):
        connect(directory)


def test_a_damaged_name_of_a_table_is_an_error_in_words(directory: Path) -> None:
    with closing(sqlite3.connect(directory / DATABASE)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(x'80' AS TEXT), sql = 'x' WHERE name = 'event'")
    with pytest.raises(RunError, match=r"is damaged .*accel-tui repair"):
        connect(directory)


def test_the_missing_format_version_is_named(directory: Path) -> None:
    execute(directory, "DELETE FROM main.meta WHERE key = 'schema'")
    with pytest.raises(RunError, match=r"is damaged \(no format version\)"):
        connect(directory)


def test_a_file_that_is_no_database_is_closed(directory: Path) -> None:
    for left in directory.glob(f"{DATABASE}-*"):
        left.unlink()
    (directory / DATABASE).write_bytes(b"not a database at all, but long enough to look at" * 100)
    with pytest.raises(RunError) as caught:  # keeps the traceback's local variables alive
        connect(directory)
    assert caught.value.__cause__
    assert str(directory / DATABASE) not in {file.path for file in psutil.Process().open_files()}


def test_reader_cannot_write(directory: Path) -> None:
    with closing(connect(directory, read_only=True)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("DELETE FROM main.meta")
    with pytest.raises(DatabaseError, match="readonly"), reading(directory) as connection:
        connection.execute("DELETE FROM main.meta")


def test_transaction_that_fails_leaves_nothing_and_can_be_followed_by_another(directory: Path) -> None:
    def fail(connection: Database) -> None:
        with connection.transaction():
            connection.execute("DELETE FROM main.meta")
            raise ZeroDivisionError

    with closing(connect(directory)) as connection:
        with pytest.raises(ZeroDivisionError):
            fail(connection)
        with connection.transaction():
            assert connection.execute("SELECT count(*) FROM meta").fetchone()[0] > 0


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_is_read_on_a_disk_without_room_for_sqlite_s_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        monkeypatch.setenv("ACCEL_TUI_HOME", str(disk / "home"))
        directory = create(Plan())
        writer = RunWriter(directory)
        writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0, 2.0]})
        files = {path: path.read_bytes() for path in directory.glob("run.db*") if not path.name.endswith("-shm")}
        writer.close()
        if killed:
            for path, content in files.items():
                path.write_bytes(content)
        with filled(disk):
            (summary,) = list_runs()
            assert (summary.problem, summary.steps) == ("", 2)
            with closing(RunReader(directory)) as reader:
                assert reader.poll().chunks[0].series["loss"].tolist() == [1.0, 2.0]
