"""The directory of the runs, on the true disk where that can be, with stand-ins where it would have to be full."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from accel_engine.doctor import CheckResult, run_directory_checks
from accel_engine.doctor.run_directory_checks import (
    LOW_SPACE,
    NO_SPACE,
    Mount,
    check_database,
    check_directory,
    check_run_lock,
    check_space,
    find_mount,
)
from accel_engine.plan import Plan
from accel_engine.run import create


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_directory_that_will_be_made_leaves_no_trace(machine) -> None:
    given = machine(home=machine().home / "deeper")
    assert check_directory(given).summary == f"{given.home} (created with the first run)"
    assert check_database(given).verdict is CheckResult.PASS
    assert not given.home.parent.exists()


def test_a_directory_with_runs(machine, home: Path) -> None:
    create(Plan())
    before = sorted(home.rglob("*"))
    given = machine(home=home)
    assert check_directory(given) == check_directory(given)
    assert (check_directory(given).verdict, check_directory(given).summary) == (CheckResult.PASS, str(home))
    assert check_database(given).verdict is CheckResult.PASS
    assert sorted(home.rglob("*")) == before


def test_a_directory_that_others_can_read(machine, home: Path) -> None:
    create(Plan())
    home.chmod(0o755)
    assert check_directory(machine(home=home)).verdict is CheckResult.PASS  # the runs in it are closed all the same
    (home / "runs").chmod(0o755)
    finding = check_directory(machine(home=home))
    assert finding.verdict is CheckResult.WARN
    assert finding.fix == f"run chmod 700 {home / 'runs'}"


def test_a_directory_of_somebody_else(machine, home: Path, monkeypatch) -> None:
    create(Plan())
    monkeypatch.setattr(run_directory_checks.os, "geteuid", lambda: os.getuid() + 1)
    finding = check_directory(machine(home=home))
    assert finding.verdict is CheckResult.WARN
    assert "sudo" in finding.fix


def test_a_directory_below_a_file(machine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = machine(home=tmp_path / "file" / "home")
    finding = check_directory(given)
    assert finding.verdict is CheckResult.FAIL
    assert "ACCEL_TUI_HOME" in finding.fix
    assert check_database(given).verdict is CheckResult.FAIL


def test_a_directory_that_cannot_be_written(machine, monkeypatch) -> None:
    monkeypatch.setattr(run_directory_checks.tempfile, "TemporaryDirectory", refuse)
    given = machine()
    finding = check_directory(given)
    assert (finding.verdict, finding.cause) == (CheckResult.FAIL, "Permission denied")
    assert check_database(given).verdict is CheckResult.FAIL


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(LOW_SPACE, CheckResult.PASS), (LOW_SPACE - 1, CheckResult.WARN), (NO_SPACE - 1, CheckResult.FAIL)],
)
def test_space(machine, monkeypatch, free, verdict) -> None:
    monkeypatch.setattr(run_directory_checks.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert check_space(machine()).verdict is verdict


def test_a_disk_that_can_hold_no_more_files(machine, monkeypatch) -> None:
    monkeypatch.setattr(run_directory_checks.os, "statvfs", lambda _: SimpleNamespace(f_files=100, f_favail=0))
    monkeypatch.setattr(run_directory_checks.shutil, "disk_usage", lambda _: SimpleNamespace(free=LOW_SPACE))
    finding = check_space(machine())
    assert finding.verdict is CheckResult.FAIL
    assert "inodes" in finding.cause


def test_a_disk_without_a_write_ahead_log(machine, monkeypatch) -> None:
    monkeypatch.setattr(run_directory_checks, "_journal", lambda _: "delete")
    finding = check_database(machine())
    assert finding.verdict is CheckResult.WARN
    assert "journal mode delete" in finding.summary


def test_a_disk_that_machines_share(machine, monkeypatch) -> None:
    monkeypatch.setattr(run_directory_checks, "find_mount", lambda _: Mount("nfs4"))
    finding = check_database(machine())
    assert finding.verdict is CheckResult.WARN
    assert "only the machine that trains a run" in finding.cause


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path, monkeypatch) -> None:
    mounts = [("/", "ext4"), (str(tmp_path), "nfs4"), (str(tmp_path / "local"), "xfs")]
    parts = [SimpleNamespace(mountpoint=place, fstype=kind, opts="rw,nolock") for place, kind in mounts]
    monkeypatch.setattr(run_directory_checks.psutil, "disk_partitions", lambda **_: parts)
    assert find_mount(tmp_path / "runs") == Mount("nfs4", ("rw", "nolock"))
    assert find_mount(tmp_path / "local" / "runs").kind == "xfs"
    assert find_mount(tmp_path.parent).kind == "ext4"
    monkeypatch.setattr(run_directory_checks.psutil, "disk_partitions", lambda **_: [])
    assert find_mount(tmp_path) == Mount()


def test_a_disk_with_locks(machine) -> None:
    assert check_run_lock(machine()).verdict is CheckResult.PASS


def test_a_disk_without_locks(machine, monkeypatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.fcntl", no_locks)
    finding = check_run_lock(machine())
    assert finding.verdict is CheckResult.FAIL
    assert "No locks available" in finding.cause


def test_a_disk_whose_locks_others_do_not_see(machine, monkeypatch) -> None:
    monkeypatch.setattr(run_directory_checks, "is_locked", lambda _: False)
    assert check_run_lock(machine()).verdict is CheckResult.FAIL


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Mount("nfs", ("rw", "nolock")), CheckResult.WARN),
        (Mount("lustre", ("rw", "localflock")), CheckResult.WARN),
        (Mount("nfs4", ("rw", "local_lock=none")), CheckResult.PASS),
        (Mount("ext4", ("rw", "nolock")), CheckResult.PASS),
    ],
)
def test_a_shared_disk_whose_locks_are_of_one_machine(machine, monkeypatch, found, verdict) -> None:
    monkeypatch.setattr(run_directory_checks, "find_mount", lambda _: found)
    assert check_run_lock(machine()).verdict is verdict
