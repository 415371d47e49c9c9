import sqlite3
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from accel_engine.errors import RunError
from accel_engine.run import SCHEMA_VERSION, RunReader, RunWriter
from accel_engine.run.connection import DATABASE, connect
from accel_engine.run.database import Database
from recorded_run import execute


def test_runs_are_kept_in_wal_mode(directory: Path) -> None:
    with closing(connect(directory)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_directory_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run in"):
        connect(tmp_path)


def test_newer_format_is_refused_with_what_to_do(directory: Path) -> None:
    execute(directory, "UPDATE meta SET value = ? WHERE key = 'schema'", SCHEMA_VERSION + 1)
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
    with pytest.raises(RunError, match="cannot read run"):
        connect(directory)


@pytest.mark.parametrize("change", ["DELETE FROM meta", "UPDATE meta SET value = 'abc'", "DROP TABLE meta"])
def test_database_without_a_format_version_is_an_error_in_words(directory: Path, change: str) -> None:
    with closing(sqlite3.connect(directory / DATABASE)) as connection, connection:
        connection.execute(change)
    with pytest.raises(RunError, match="cannot read run"):
        connect(directory)


def test_the_missing_format_version_is_named(directory: Path) -> None:
    execute(directory, "DELETE FROM meta WHERE key = 'schema'")
    with pytest.raises(RunError, match=r": no format version$"):
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
        connection.execute("DELETE FROM meta")


def test_transaction_that_fails_leaves_nothing_and_can_be_followed_by_another(directory: Path) -> None:
    def fail(connection: Database) -> None:
        with connection.transaction():
            connection.execute("DELETE FROM meta")
            raise ZeroDivisionError

    with closing(connect(directory)) as connection:
        with pytest.raises(ZeroDivisionError):
            fail(connection)
        with connection.transaction():
            assert connection.execute("SELECT count(*) FROM meta").fetchone()[0] > 0
