import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create, list_runs
from accel_engine.run.directory.disk_space import free_bytes
from accel_engine.run.runs import removal
from accel_engine.run.runs.creation import create_worker
from accel_engine.run.runs.removal import Contents, count_contents, remove
from accel_engine.run.store.database import DATABASE, RunDatabase, create_file
from full_disk import filled, small_disk
from recorded_run import execute


def fill(directory: Path) -> None:
    (directory / "checkpoints").mkdir()
    for name in ("step-10.index", "step-10.data-00000-of-00001", "step-20.index"):
        (directory / "checkpoints" / name).write_bytes(b"x" * 1000)
    (directory / "model.keras").write_bytes(b"x" * 5000)


def test_what_goes_with_a_run_is_told_and_then_all_of_it_goes(ended: Path, writer: RunWriter) -> None:
    writer.close()
    fill(ended)
    other = create(Plan())
    found = count_contents(ended)
    assert found == Contents(found.size, checkpoints=2, model=True, workers=0)
    assert 8000 < found.size < 200_000
    remove(ended)
    assert not ended.exists()
    assert [run.directory for run in list_runs()] == [other]


def test_the_database_is_deleted_last(ended: Path, writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.close()
    fill(ended)
    monkeypatch.setattr(removal, "_remove_directory", lambda _: None)
    remove(ended)
    assert {path.name.partition("-")[0] for path in ended.iterdir()} == {DATABASE}
    assert [run.directory for run in list_runs()] == [ended]


def test_a_live_run_is_not_deleted(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    for act in (count_contents, remove):
        with pytest.raises(RunError, match="is running: stop it before deleting it"):
            act(directory)
    assert list_runs()


def test_a_run_whose_other_worker_lives_is_not_deleted(ended: Path) -> None:
    part = create_worker(ended, "1", Plan())
    with closing(RunWriter(part)) as worker:
        worker.begin()
        with pytest.raises(RunError, match=f"worker 1 of run {ended.name} is running"):
            remove(ended)
    assert part.is_dir()


def test_what_is_only_linked_into_a_run_stays(ended: Path) -> None:
    part = create(Plan())
    (ended / "workers").mkdir()
    (ended / "workers" / "1").symlink_to(part, target_is_directory=True)
    assert count_contents(ended).workers == 0
    remove(ended)
    assert [run.directory for run in list_runs()] == [part]


def test_a_damaged_run_is_left_to_its_owner(ended: Path) -> None:
    execute(ended, "DROP TABLE main.event")
    with pytest.raises(RunError, match=f"delete {ended} yourself"):
        remove(ended)
    assert ended.is_dir()


def test_a_run_that_cannot_be_deleted_whole_stays_in_the_list(ended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(ended)

    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("accel_engine.run.runs.removal.shutil.rmtree", refuse)
    with pytest.raises(RunError, match="cannot delete all of the run"):
        remove(ended)
    assert [run.directory for run in list_runs()] == [ended]


def test_a_run_whose_database_is_locked_is_said_to_be(ended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.versioned_database.LOCK_TIMEOUT_SECONDS", 0.01)
    with RunDatabase(ended) as other, other.transaction(), pytest.raises(RunError) as caught:
        remove(ended)
    assert str(caught.value) == f"run {ended.name} cannot be written: database is locked"


def test_what_goes_while_it_is_looked_at_counts_nothing_and_what_cannot_be_read_says_why(
    ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(directory: Path) -> Iterator[os.DirEntry[str]]:
        gone = directory / "of-a-reader"
        gone.write_text("of a reader that has just left")
        with os.scandir(directory) as entries:
            found = list(entries)
        gone.unlink()
        return iter(found)

    monkeypatch.setattr(removal, "_files", vanish)
    assert count_contents(ended).size > 0

    def refuse(_: Path) -> Iterator[os.DirEntry[str]]:
        raise PermissionError("not yours")

    monkeypatch.setattr(removal, "_files", refuse)
    with pytest.raises(RunError, match="not yours"):
        count_contents(ended)


def test_a_run_that_is_deleted_while_it_is_listed_leaves_nothing(home: Path) -> None:
    over, problems = threading.Event(), []  # type: tuple[threading.Event, list[str]]

    def list_again() -> None:
        while not over.is_set():
            list_runs()

    watchers = [threading.Thread(target=list_again) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(30):
            directory = create(Plan())
            execute(directory, "UPDATE main.meta SET value = -1e9 WHERE key = 'pending'")  # nobody is to train it
            remove(directory)
            problems += [directory.name] if directory.exists() else []
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()
    assert problems == []


def test_a_file_that_its_last_reader_deletes_meanwhile_is_no_error(
    ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree, errors = shutil.rmtree, [FileNotFoundError(errno.ENOENT, "No such file or directory", f"{DATABASE}-shm")]

    def race(path: Path) -> None:
        if errors:
            raise errors.pop()
        rmtree(path)

    monkeypatch.setattr(removal.shutil, "rmtree", race)
    remove(ended)
    assert not ended.exists()


def test_opening_a_run_that_was_just_deleted_makes_no_file(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: True)  # it was there a moment ago
    (directory / DATABASE).unlink()
    with pytest.raises(RunError, match="cannot be read"):
        RunDatabase(directory)
    assert not (directory / DATABASE).exists()


def test_a_run_in_a_directory_of_any_name_is_opened(tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"a?b #%41 \xff")
    place.mkdir()
    create_file(place / DATABASE)
    RunDatabase(place).close()


def test_a_run_on_a_full_disk_can_be_deleted_to_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        monkeypatch.setenv("ACCEL_TUI_HOME", str(disk / "home"))
        directory = create(Plan())
        with closing(RunWriter(directory)) as writer:
            writer.begin()
            writer.end(RunEnded(time=1.0, outcome=Outcome.STOPPED, steps=0, epochs=0, seconds=1.0))
        with filled(disk):
            remove(directory)
            assert not directory.exists()
            assert free_bytes(disk)
