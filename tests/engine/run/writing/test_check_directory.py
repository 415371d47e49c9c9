"""A run that is deleted, moved or replaced while it is written ends, and says so where it still can."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create, reopen
from accel_engine.run.directory.run_paths import LOCK
from recorded_run import put, started


@pytest.fixture
def writing(writer: RunWriter) -> RunWriter:
    """The writer of a run of three steps."""
    writer.begin(started())
    add_steps(writer, 0)
    return writer


def add_steps(writer: RunWriter, first: int) -> None:
    writer.write_chunk(first, 1.0, 2.0, {"loss": np.arange(3.0) + first})


def replace(directory: Path) -> None:
    shutil.rmtree(directory)
    create(Plan(model="cnn")).rename(directory)


def replace_by_copy(directory: Path) -> None:
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    shutil.rmtree(directory)
    put(copy, heartbeat=0.0)  # of a moment ago
    copy.rename(directory)


@pytest.mark.parametrize(
    ("lose", "happened"),
    [
        (shutil.rmtree, "its directory {} was deleted or moved"),
        (lambda directory: (directory / "run.db").unlink(), "its file {}/run.db was deleted or moved"),
        (lambda directory: (directory / LOCK).unlink(), "its directory {} or a file of the run in it was replaced"),
        (replace, "its directory {} or a file of the run in it was replaced"),
        (replace_by_copy, "its directory {} or a file of the run in it was replaced"),
    ],
    ids=["deleted", "without database", "without lock", "replaced", "replaced by a copy"],
)
@pytest.mark.parametrize("noticed_by", [RunWriter.heartbeat, RunWriter.check_directory], ids=["heartbeat", "check"])
def test_it_ends_for_whoever_has_it_open(
    writing: RunWriter,
    directory: Path,
    lose: Callable[[Path], None],
    happened: str,
    noticed_by: Callable[[RunWriter], None],
) -> None:
    with closing(RunReader(directory)) as reader:
        reader.poll()
        lose(directory)
        add_steps(writing, 3)  # nobody has noticed it yet
        there = sorted(directory.parent.rglob("*"))

        with pytest.raises(RunError, match="ends: its "):
            noticed_by(writing)

        (last,) = (event for event in reader.poll().events if isinstance(event, RunEnded))
        assert (last.outcome, last.steps, last.reason) == (Outcome.FAILED, 6, happened.format(directory))
        assert reader.info().status is Status.FAILED
    assert sorted(directory.parent.rglob("*")) <= there
    with pytest.raises(RunError, match="ends: its "):
        add_steps(writing, 6)


def test_a_moved_run_ends_in_its_new_place_and_can_be_continued(
    writing: RunWriter, directory: Path, tmp_path: Path
) -> None:
    moved = directory.rename(tmp_path / "renamed")
    with pytest.raises(RunError, match="was deleted or moved"):
        writing.heartbeat()
    with closing(RunReader(moved)) as reader:
        assert reader.info().status is Status.FAILED
    assert not directory.exists()
    reopen(moved, Plan())


def test_what_fails_in_a_directory_that_is_gone_says_that_it_is(writing: RunWriter, directory: Path) -> None:
    def fail() -> None:
        raise FileNotFoundError

    shutil.rmtree(directory)
    with pytest.raises(RunError, match="was deleted or moved"):
        writing.wait_for_disk(fail)
    assert not directory.exists()


def test_a_deleted_run_without_a_wal_ends(directory: Path) -> None:
    with closing(sqlite3.connect(directory / "run.db")) as database:
        database.execute("PRAGMA journal_mode = DELETE").fetchone()
    with closing(RunWriter(directory)) as writer:
        writer.begin(started())
        shutil.rmtree(directory)
        with pytest.raises(RunError, match="was deleted or moved"):
            writer.heartbeat()
    assert not directory.exists()


def test_file_numbers_that_change_are_no_loss(writing: RunWriter) -> None:
    writing.heartbeat()
    writing._database.file = (0, 0)
    writing.heartbeat()
    add_steps(writing, 3)


def test_another_file_is_not_opened_in_place_of_a_broken_one(writing: RunWriter, directory: Path) -> None:
    replace(directory)
    writing._reopen()
    with pytest.raises(RunError, match="was replaced"):
        writing.heartbeat()


def test_a_network_that_does_not_answer_is_no_loss(writing: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr("accel_engine.run.store.database.os.stat", fail)
        writing.check_directory()
    add_steps(writing, 3)
