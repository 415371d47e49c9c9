"""Runs in directories that this user cannot write: on a read-only disk, or another user's."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

import damaged_runs
from accel_engine.errors import DatabaseError, RunError
from accel_engine.events import Event, Warned
from accel_engine.run import RunReader
from accel_engine.run.runs.removal import contents
from accel_engine.run.store.annotations import set_note
from accel_engine.run.store.connection import DATABASE, connect, reading

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
def run() -> Path:
    return damaged_runs.record()


def last_event(reader: RunReader) -> Event:
    return reader.poll().events[-1]


def test_a_run_that_nobody_writes_is_read_as_it_is(run: Path) -> None:
    with unwritable(run), closing(RunReader(run)) as reader:
        assert sum(chunk.count for chunk in reader.poll().chunks) == damaged_runs.STEPS
        assert not (run / f"{DATABASE}-shm").exists()


def test_a_reader_of_a_run_that_can_be_written_leaves_no_files(run: Path) -> None:
    files = set(os.listdir(run))
    with closing(connect(run, read_only=True)) as reader:
        assert reader.count("event")
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
        for change in (lambda: set_note(run, "a note"), lambda: contents(run)):
            with pytest.raises(RunError, match=f"run {run.name} cannot be changed: {run} cannot be written"):
                change()
