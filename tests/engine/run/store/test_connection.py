import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil
import pytest

import damaged_runs
from accel_engine.errors import DatabaseError, RunError
from accel_engine.events import Event, Warned
from accel_engine.plan import Plan
from accel_engine.run import SCHEMA_VERSION, RunReader, RunWriter, create, list_runs
from accel_engine.run.runs.removal import count_contents
from accel_engine.run.store.annotations import set_note
from accel_engine.run.store.database import DATABASE, RunDatabase, reading
from full_disk import filled, small_disk
from recorded_run import execute


def test_runs_are_kept_in_wal_mode(directory: Path) -> None:
    with closing(RunDatabase(directory)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_directory_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run in"):
        RunDatabase(tmp_path)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (SCHEMA_VERSION + 1, r"newer accel-tui.*upgrade accel-tui"),
        (SCHEMA_VERSION - 1, r"older accel-tui.*open it with the version that created it"),
    ],
)
def test_another_format_is_refused_with_what_to_do(directory: Path, version: int, said: str) -> None:
    execute(directory, "UPDATE main.meta SET value = ? WHERE key = 'schema'", version)
    for opening in (RunReader, RunWriter, RunDatabase):
        with pytest.raises(RunError, match=said):
            opening(directory)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to look at" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_file_that_is_no_database_is_an_error_in_words(directory: Path, content: bytes) -> None:
    for left in directory.glob(f"{DATABASE}-*"):
        left.unlink()
    (directory / DATABASE).write_bytes(content)
    with pytest.raises(RunError, match="cannot be read"):
        RunDatabase(directory)


@pytest.mark.parametrize(
    "change", ["DELETE FROM main.meta", "UPDATE main.meta SET value = 'abc'", "DROP TABLE main.meta"]
)
def test_database_without_a_format_version_is_an_error_in_words(directory: Path, change: str) -> None:
    with closing(sqlite3.connect(directory / DATABASE)) as connection, connection:
        connection.execute(change)
    with pytest.raises(RunError, match="cannot be read"):
        RunDatabase(directory)


def test_a_damaged_name_of_a_table_is_an_error_in_words(directory: Path) -> None:
    with closing(sqlite3.connect(directory / DATABASE)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(x'80' AS TEXT), sql = 'x' WHERE name = 'event'")
    with pytest.raises(RunError, match=r"is damaged .*accel-tui repair"):
        RunDatabase(directory)


def test_the_missing_format_version_is_named(directory: Path) -> None:
    execute(directory, "DELETE FROM main.meta WHERE key = 'schema'")
    with pytest.raises(RunError, match=r"is damaged \(it has no version of its format\)"):
        RunDatabase(directory)


def test_a_file_that_is_no_database_is_closed(directory: Path) -> None:
    for left in directory.glob(f"{DATABASE}-*"):
        left.unlink()
    (directory / DATABASE).write_bytes(b"not a database at all, but long enough to look at" * 100)
    with pytest.raises(RunError) as caught:  # keeps the traceback's local variables alive
        RunDatabase(directory)
    assert caught.value.__cause__
    assert str(directory / DATABASE) not in {file.path for file in psutil.Process().open_files()}


def test_reader_cannot_write(directory: Path) -> None:
    with closing(RunDatabase(directory, read_only=True)) as connection, pytest.raises(DatabaseError):
        connection.execute("DELETE FROM main.meta")
    with pytest.raises(DatabaseError, match="readonly"), reading(directory) as connection:
        connection.execute("DELETE FROM main.meta")


def test_transaction_that_fails_leaves_nothing_and_can_be_followed_by_another(directory: Path) -> None:
    def fail(connection: RunDatabase) -> None:
        with connection.transaction():
            connection.execute("DELETE FROM main.meta")
            raise ZeroDivisionError

    with closing(RunDatabase(directory)) as connection:
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


WARNING = "INSERT INTO main.event (time, kind, body) VALUES (1.8e9, 'warned', '{\"message\": \"new\"}')"


@contextmanager
def unwritable(directory: Path) -> Iterator[None]:
    """Nobody may write the directory; root becomes another user meanwhile."""
    modes = {path: path.stat().st_mode for path in (directory, *directory.iterdir())}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.getresuid()
    if user[1] == 0:
        for parent in directory.parents[:-1]:
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(*user)
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run outside pytest's folder, which each start of pytest closes to other users."""
    with tempfile.TemporaryDirectory() as place:
        monkeypatch.setenv("ACCEL_TUI_HOME", place)
        yield damaged_runs.record()


def last_event(reader: RunReader) -> Event:
    return reader.poll().events[-1]


def test_a_run_that_nobody_writes_is_read_as_it_is(run: Path) -> None:
    with unwritable(run), closing(RunReader(run)) as reader:
        assert sum(chunk.count for chunk in reader.poll().chunks) == damaged_runs.STEPS
        assert not (run / f"{DATABASE}-shm").exists()


def test_a_reader_of_a_run_that_can_be_written_leaves_no_files(run: Path) -> None:
    files = set(os.listdir(run))
    with closing(RunDatabase(run, read_only=True)) as reader:
        assert reader.last_id("event")
    assert set(os.listdir(run)) == files


def test_a_run_that_is_being_written_is_followed(run: Path) -> None:
    with closing(sqlite3.connect(run / DATABASE, isolation_level=None)) as writer:
        writer.execute(WARNING)
        with unwritable(run), closing(RunReader(run)) as reader:
            assert isinstance(last_event(reader), Warned)
            writer.execute(WARNING)
            assert len(reader.poll().events) == 1


def test_a_log_without_its_index_is_read_in_a_copy(run: Path) -> None:
    """As on the copy of a run whose engine was killed."""
    with closing(sqlite3.connect(run / DATABASE, isolation_level=None)) as writer:
        writer.execute(WARNING)
        copy = damaged_runs.copied(run, run.parent / "copy")
    (copy / f"{DATABASE}-shm").unlink()
    with unwritable(copy):
        with closing(RunReader(copy)) as reader:
            assert isinstance(last_event(reader), Warned)
        assert {path.name for path in copy.iterdir()} >= {DATABASE, f"{DATABASE}-wal"}


def test_what_changes_while_it_is_read_is_an_error_and_then_read_anew(run: Path) -> None:
    """A connection that takes the file as unchanging never returns what is no longer true."""
    again = "was written while it was read: try again"
    with unwritable(run), closing(RunReader(run, max_events=2)) as reader, ExitStack() as stack:
        events = reader.events()
        next(events)
        stack.enter_context(reading(run))
        if os.getresuid()[2] == 0:
            os.setresuid(0, 0, 0)
        (run / DATABASE).chmod(0o600)
        with (run / DATABASE).open("ab") as file:
            file.write(bytes(4096))
        (run / DATABASE).chmod(0o444)
        if os.getresuid()[2] == 0:
            os.setresuid(65534, 65534, 0)
        with pytest.raises(DatabaseError, match=again):
            stack.close()
        with pytest.raises(DatabaseError, match=again):
            list(events)
        first, second = reader.poll().events, reader.poll().events
        assert first
        assert second
        assert first != second


def test_writing_it_is_an_error_in_words(run: Path) -> None:
    with unwritable(run), pytest.raises(RunError, match="permission denied"):
        set_note(run, "a note")


def test_what_would_change_a_run_says_first_that_it_cannot_be_written() -> None:
    run = damaged_runs.record()
    with unwritable(run):
        for change in (lambda: set_note(run, "a note"), lambda: count_contents(run)):
            with pytest.raises(RunError, match=f"run {run.name} cannot be changed: {run} cannot be written"):
                change()
