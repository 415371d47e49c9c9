"""A run that is deleted, moved or replaced while it is written goes on in another directory."""

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create, list_runs, runs_directory
from accel_engine.run.damage import lost_directory
from accel_engine.run.damage.lost_directory import SAVED_AS
from accel_engine.run.directory import lock
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.directory.log_file import last_note
from accel_engine.run.directory.run_paths import LOCK, WORKERS
from recorded_run import put, started


@pytest.fixture
def writing(writer: RunWriter) -> RunWriter:
    """The writer of a run of three steps."""
    writer.begin(started())
    add_steps(writer, 0)
    return writer


def add_steps(writer: RunWriter, first: int) -> None:
    writer.write_chunk(first, 1.0, 2.0, {"loss": np.arange(3.0) + first})


def losses(directory: Path) -> list[float]:
    with closing(RunReader(directory)) as reader:
        return [float(loss) for chunk in reader.poll().chunks for loss in chunk.series["loss"]]


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
        (shutil.rmtree, "its directory {} was deleted"),
        (lambda directory: (directory / "run.db").unlink(), "its file {}/run.db was deleted"),
        (replace, "its file {}/run.db was replaced by another"),
        (replace_by_copy, "its file {}/run.db was replaced by another"),
    ],
    ids=["deleted", "without database", "replaced", "replaced by a copy"],
)
def test_what_was_recorded_is_saved_beside(
    writing: RunWriter, directory: Path, lose: Callable[[Path], None], happened: str
) -> None:
    with closing(RunReader(directory)) as reader:
        reader.poll()
        lose(directory)
        add_steps(writing, 3)  # nobody has noticed it yet
        info = reader.info()
        assert (info.status, info.is_directory_lost) == (Status.RUNNING, True)

        writing.heartbeat()

        saved = runs_directory() / f"{directory.name}-saved"
        assert (writing.directory, writing.directory_loss) == (saved, happened.format(directory))
        (last,) = (event for event in reader.poll().events if isinstance(event, RunEnded))
        assert (last.outcome, last.steps, last.reason) == (Outcome.FAILED, 6, writing.directory_loss)
        assert last.hint == f"what was recorded is saved: accel-tui watch {saved.name}"
        assert reader.info().status is Status.FAILED
    assert list(directory.parent.glob(f"{directory.name}-saved*")) == [saved]

    add_steps(writing, 6)
    assert losses(saved) == list(range(9))
    assert {run.id: run.status for run in list_runs()}[saved.name] is Status.RUNNING
    writing.heartbeat()
    assert writing.directory == saved


def test_nothing_is_written_to_a_directory_that_is_gone(writing: RunWriter, directory: Path) -> None:
    shutil.rmtree(directory)

    writing.follow_directory()
    writing.heartbeat()

    assert not directory.exists()


@pytest.fixture
def without_wal(directory: Path) -> RunWriter:
    """The writer of a run on a file system that refuses a WAL."""
    with closing(sqlite3.connect(directory / "run.db")) as database:
        database.execute("PRAGMA journal_mode = DELETE").fetchone()
    return RunWriter(directory)


@pytest.mark.parametrize("noticed_by", [RunWriter.heartbeat, lambda writer: add_steps(writer, 3)])
def test_a_deleted_run_without_a_wal_is_saved_once(
    without_wal: RunWriter, directory: Path, noticed_by: Callable[[RunWriter], None]
) -> None:
    with closing(without_wal) as writer:
        writer.begin(started())
        add_steps(writer, 0)
        shutil.rmtree(directory)

        noticed_by(writer)
        writer.heartbeat()

        saved = directory.with_name(f"{directory.name}-saved")
        assert writer.directory == saved
        assert losses(saved)[:3] == [0.0, 1.0, 2.0]
        assert list(directory.parent.iterdir()) == [saved]


@pytest.mark.parametrize("place", ["runs", "elsewhere"])
def test_a_moved_run_is_followed(writing: RunWriter, directory: Path, tmp_path: Path, place: str) -> None:
    moved = (runs_directory() if place == "runs" else tmp_path) / "renamed"
    directory.rename(moved)

    writing.heartbeat()

    assert (writing.directory, writing.directory_loss) == (moved, f"its directory {directory} was moved to {moved}")
    add_steps(writing, 3)
    writing.heartbeat()
    assert losses(moved) == list(range(6))
    with closing(RunReader(moved)) as reader:
        assert reader.info().status is Status.RUNNING
    assert not directory.exists()


def test_without_the_directory_of_runs_it_is_saved_in_a_temporary_one(
    writing: RunWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shutil.rmtree(runs_directory())

    writing.heartbeat()

    assert tmp_path in writing.directory.parents
    assert losses(writing.directory) == list(range(3))
    assert writing.directory.parent.stat().st_mode & 0o777 == 0o700
    assert not runs_directory().exists()


def test_where_nothing_can_be_saved_the_run_ends(
    writing: RunWriter, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with closing(RunReader(directory)) as reader:
        shutil.rmtree(runs_directory())

        with pytest.raises(RunError, match="was deleted; what was recorded could not be saved: there is no directory"):
            writing.heartbeat()

        assert reader.info().status is Status.FAILED


def test_a_run_that_is_saved_twice_has_another_directory(directory: Path) -> None:
    for name in ("-saved", "-saved2"):
        with closing(RunWriter(directory)) as writer:
            writer.begin(started())
            shutil.rmtree(directory)
            writer.heartbeat()
            assert writer.directory.name == f"{directory.name}{name}"
        shutil.copytree(writer.directory, directory)


def test_the_run_of_a_worker_is_saved_in_that_of_its_chief(directory: Path) -> None:
    worker = directory / WORKERS / "1"
    worker.parent.mkdir()
    create(Plan()).rename(worker)
    with closing(RunWriter(directory)) as chief, closing(RunWriter(worker)) as other:
        for each in (chief, other):
            each.begin(started())
        shutil.rmtree(directory)
        for each in (other, chief):
            each.heartbeat()
        assert other.directory == chief.directory / WORKERS / "1"


def test_a_deleted_lock_is_made_again(writing: RunWriter, directory: Path) -> None:
    writing.show_problem(DiskProblem.FULL)
    former = writing._writer_lock
    (directory / LOCK).unlink()
    with closing(RunReader(directory)) as reader:
        assert reader.info().status is Status.RUNNING

        writing.heartbeat()

        assert (directory / LOCK).exists()
        assert (reader.info().status, writing.directory_loss) == (Status.RUNNING, "")
        assert reader.info().waiting is DiskProblem.FULL
        assert os.listdir(runs_directory()) == [directory.name]
    assert former not in lock._held


def test_file_numbers_that_change_are_no_loss(
    writing: RunWriter, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing.heartbeat()
    writing._database.file = (0, 0)

    writing.heartbeat()

    assert writing.directory_loss == ""


@pytest.mark.parametrize("by", ["nothing", "another run"])
def test_a_file_overwritten_in_place_is_noticed(writing: RunWriter, directory: Path, by: str) -> None:
    other = create(Plan(name="other"))
    with closing(RunWriter(other)) as writer:
        writer.begin(started())
        for first in range(1000, 1300, 3):
            add_steps(writer, first)
    writing.heartbeat()
    add_steps(writing, 3)
    new = (other / "run.db").read_bytes() if by == "another run" else b""
    (directory / "run.db").write_bytes(new)  # of the same inode

    writing.heartbeat()

    saved = directory.with_name(f"{directory.name}-saved")
    assert (writing.directory, writing.directory_loss) == (
        saved,
        f"its file {directory}/run.db was overwritten by another program",
    )
    add_steps(writing, 6)
    writing.heartbeat()
    assert losses(saved) == list(range(9))
    assert (directory / "run.db").read_bytes() == new
    assert not list(directory.glob("run.db-*"))  # whoever opens the new contents must not read them with the old log
    with closing(RunReader(saved)) as reader:
        assert reader.info().status is Status.RUNNING
    assert last_note(directory) == f"run {directory.name}: {writing.directory_loss}; {SAVED_AS} {saved.name}"


def test_a_full_disk_that_takes_a_part_of_the_log_is_no_other_program(writing: RunWriter, directory: Path) -> None:
    writing.heartbeat()
    add_steps(writing, 3)
    file = directory / "run.db"
    with file.open("r+b") as content:  # SQLite writes page by page
        content.seek(28)  # number of pages
        content.write((1 << 20).to_bytes(4, "big"))
        content.seek(4096)
        content.write(b"\xff" * 4096)

    writing.follow_directory()

    assert writing.directory_loss == ""


def test_a_file_overwritten_in_place_stays_so_where_nothing_can_be_saved(
    writing: RunWriter, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(RunWriter(other := create(Plan(name="other")))) as writer:
        writer.begin(started())
    writing.heartbeat()
    add_steps(writing, 3)
    new = (other / "run.db").read_bytes()
    (directory / "run.db").write_bytes(new)
    monkeypatch.setattr(lost_directory, "save_own_pages", refuse)

    with pytest.raises(RunError, match="overwritten by another program; what was recorded could not be saved"):
        writing.heartbeat()
    with pytest.raises(RunError, match="another program wrote into the file"):
        add_steps(writing, 6)
    writing.close()

    assert (directory / "run.db").read_bytes() == new
    assert not list(directory.glob("run.db-*"))
    assert not directory.with_name(f"{directory.name}-saved").exists()


def test_another_file_is_not_opened_in_place_of_a_broken_one(writing: RunWriter, directory: Path) -> None:
    replace(directory)

    writing._reopen()
    writing.heartbeat()

    assert writing.directory == directory.with_name(f"{directory.name}-saved")
    assert losses(writing.directory) == list(range(3))


def test_a_network_that_does_not_answer_is_no_loss(
    writing: RunWriter, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("accel_engine.run.damage.lost_directory.os.stat", fail)
    writing.follow_directory()
    monkeypatch.undo()

    assert writing.directory_loss == ""
