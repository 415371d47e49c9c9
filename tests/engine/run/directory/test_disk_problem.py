"""Which errors are those of a disk."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from accel_engine.errors import DatabaseError, RunError
from accel_engine.run.directory import disk_problem as module
from accel_engine.run.directory.disk_problem import DiskProblem, disk_problem
from accel_engine.run.store.connection import explained
from full_disk import filled, small_disk, sqlite_error


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (errno.ENOSPC, DiskProblem.FULL),
        (errno.EDQUOT, DiskProblem.QUOTA),
        (errno.EFBIG, DiskProblem.QUOTA),
        (errno.EROFS, DiskProblem.READ_ONLY),
        (errno.EIO, DiskProblem.IO),
        (errno.EACCES, None),
        (errno.ENOENT, None),
    ],
)
def test_an_error_of_the_system_is_told_by_its_number(
    tmp_path: Path, number: int, problem: DiskProblem | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert disk_problem(OSError(number, "whatever"), tmp_path) is problem

    # SQLite has one code for many: what a write says counts.
    def refuse(*_: object) -> None:
        raise OSError(number, "whatever")

    monkeypatch.setattr(module.os, "pwrite", refuse)
    assert disk_problem(sqlite_error(sqlite3.SQLITE_IOERR_WRITE), tmp_path) is problem


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (sqlite3.SQLITE_FULL, DiskProblem.FULL),
        (sqlite3.SQLITE_IOERR_FSYNC, DiskProblem.IO),
        (sqlite3.SQLITE_IOERR_SHMSIZE, DiskProblem.IO),
        (sqlite3.SQLITE_CANTOPEN, DiskProblem.IO),
        (sqlite3.SQLITE_READONLY, DiskProblem.READ_ONLY),
        (sqlite3.SQLITE_READONLY_DBMOVED, None),
        (sqlite3.SQLITE_BUSY, None),
        (sqlite3.SQLITE_LOCKED, None),
        (sqlite3.SQLITE_CORRUPT, None),
        (sqlite3.SQLITE_CONSTRAINT_NOTNULL, None),
    ],
)
def test_an_error_of_sqlite_is_told_by_its_code(tmp_path: Path, code: int, problem: DiskProblem | None) -> None:
    with pytest.raises(DatabaseError) as raised, explained("cannot write"):
        raise sqlite_error(code, "database or disk is full")
    assert disk_problem(raised.value, tmp_path) is problem
    assert os.listdir(tmp_path) == []


def test_a_directory_that_is_gone_is_not_a_problem_of_the_disk(tmp_path: Path) -> None:
    assert disk_problem(sqlite_error(sqlite3.SQLITE_IOERR_WRITE), tmp_path / "gone") is None


def test_an_error_of_tensorflow_has_the_system_s_text(tmp_path: Path) -> None:
    class ResourceExhaustedError(Exception):
        error_code = 8

    text = f"/runs/x/checkpoints/step-5_temp; {os.strerror(errno.ENOSPC)} [Op:SaveV2]"
    assert disk_problem(ResourceExhaustedError(text), tmp_path) is DiskProblem.FULL
    assert disk_problem(ResourceExhaustedError("failed to allocate 8 GiB on GPU:0"), tmp_path) is None
    assert disk_problem(RunError(text), tmp_path) is None  # a text alone says nothing


def test_a_real_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        database = sqlite3.connect(disk / "some.db", isolation_level=None)
        database.execute("CREATE TABLE numbers (value)")
        with filled(disk), pytest.raises(sqlite3.OperationalError) as raised:
            database.execute("INSERT INTO numbers VALUES (?)", (bytes(9000),))
        assert disk_problem(raised.value, disk) is DiskProblem.FULL
        database.execute("INSERT INTO numbers VALUES (1)")
        database.close()
