"""Every operation that writes fails once: the run is readable afterwards, and continues exactly.

`make faults` tries every operation of a run's life with every fault; this is short parts of it, and some of the whole.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from accel_engine.run import Status, create, list_runs
from accel_engine.run.directory.checkpoint_files import delete_after, find_damage, prune, steps_in
from failing_files import FAULTS, SHORT, FailingFiles, missing_sqlite
from run_under_faults import PLAN, end_at_once, failing, save, save_model, try_fault

SAMPLED = 12
"""Tries of a run's whole life in the usual tests."""


@pytest.fixture(autouse=True)
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory in memory where the system has one, as each try waits for the disk several times."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path))
    monkeypatch.setenv("ACCEL_TUI_HOME", str(place))
    yield place
    shutil.rmtree(place)


def each_fault(place: Path, use: Callable[[], object], check: Callable[[], object]) -> set[str]:
    """Let each operation of a function fail, in a fresh directory; returns the names of the operations."""
    names: set[str] = set()
    for fault in FAULTS:
        number = 1
        while True:
            shutil.rmtree(place)
            place.mkdir()
            with failing(FailingFiles(number, fault)) as files:
                use()
            check()
            names |= {*files.operations}
            if not files.has_failed:
                break
            number += 1 if fault == "ENOSPC" else 20  # some of the other faults
    return names


def test_the_layer_fails_once_and_as_asked(tmp_path: Path) -> None:
    with FailingFiles().active() as files:
        (tmp_path / "a").write_text("first")
    with FailingFiles(1, "EIO").active(), pytest.raises(OSError, match="Input/output error"):
        (tmp_path / "b").write_text("first")
    with FailingFiles(2, SHORT).active():
        (tmp_path / "c").write_text("first")
    assert files.operations == ["open", "file.write"]
    assert (tmp_path / "c").read_text() == "first"
    assert not (tmp_path / "b").exists()


def test_a_run_is_created_whole_or_not_at_all(in_memory: Path) -> None:
    def check() -> None:
        runs = list_runs()
        assert not [run.problem for run in runs if run.problem]
        assert {*(in_memory / "runs").glob("*")} == {run.directory for run in runs}

    names = each_fault(in_memory, lambda: create(PLAN), check)
    assert {"mkdir", "open", "replace"} <= names
    assert missing_sqlite() or {"sqlite pwrite64", "sqlite pwrite"} & names


def test_a_checkpoint_is_whole_or_none(in_memory: Path) -> None:
    folder = in_memory / "checkpoints"

    def use() -> None:
        for step in (6, 12, 18):
            save(folder, step, 0.5)
            prune(folder, 2, None)
        delete_after(folder, 12)
        save_model(in_memory, 0.5)

    def use_until_error() -> None:
        with suppress(OSError):
            use()

    def check() -> None:
        assert all(len([*folder.glob(f"step-{step}.data*")]) == 1 for step in steps_in(folder))
        assert not any(find_damage(folder, step) for step in steps_in(folder))
        delete_after(folder, 0)
        use()
        assert steps_in(folder) == [12]
        assert len([*folder.iterdir()]) == 3
        assert len([*in_memory.iterdir()]) == 2

    names = each_fault(in_memory, use_until_error, check)
    assert {"open", "file.write", "fsync", "rename", "replace", "unlink"} <= names


def test_a_run_ends_once_however_its_last_writes_fail(in_memory: Path) -> None:
    def use() -> None:
        end_at_once(create(PLAN), waits=True)

    def check() -> None:
        for run in list_runs():
            assert not run.problem
            if run.info and run.info.status is not Status.STOPPED:  # nothing could be opened
                end_at_once(run.directory)
        assert all(run.info and run.info.status is Status.STOPPED for run in list_runs())

    each_fault(in_memory, use, check)


def test_a_run_loses_nothing_whichever_write_fails(in_memory: Path) -> None:
    operations = try_fault(0, "ENOSPC", waits=True).operations
    faults = [fault for fault in FAULTS if fault != SHORT]
    for tried in range(SAMPLED):
        shutil.rmtree(in_memory)
        number = 1 + tried * len(operations) // SAMPLED
        fault = SHORT if "write" in operations[number - 1] and tried % 5 == 0 else faults[tried % len(faults)]
        assert try_fault(number, fault, waits=tried % 3 > 0).has_failed, (number, fault)
