"""Disks of a few megabytes that tests fill, and errors of disks that they cannot make."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accel_engine.errors import DatabaseError

_BLOCK = 4096


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk in memory on a new directory; skips the test where that is not allowed."""
    path.mkdir(parents=True)
    if os.geteuid() or not _succeeds(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", path]):
        pytest.skip("only root can mount a small disk, and not everywhere")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


@contextmanager
def failing_disk(path: Path) -> Iterator[Path]:
    """Mount a new directory on a disk that :func:`fail` makes read-only; skips the test where that is not allowed."""
    image = path.with_suffix(".img")
    path.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(16 << 20)
    commands = (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop,errors=remount-ro", image, path])
    if os.geteuid() or not shutil.which("mkfs.ext4") or not all(map(_succeeds, commands)):
        pytest.skip("only root can mount a disk that fails, and not everywhere")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fail(disk: Path) -> None:
    """Make a disk read-only at once, as the system does after an error of it."""
    subprocess.run(["mount", "-o", "remount,abort", disk], check=True)


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Keep this user from writing a directory and all in it while the block runs; root's must be a separate disk."""
    if not os.geteuid():
        subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
        yield
        return
    modes = {path: path.stat().st_mode for path in (directory, *directory.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextmanager
def filled(disk: Path, leaving: int = 0) -> Iterator[None]:
    """Fill a disk, except for some bytes, while the block runs."""
    path = disk / "filler"
    try:
        fill(path)
        os.truncate(path, max(0, path.stat().st_size - leaving))
        yield
    finally:
        path.unlink()


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, _BLOCK):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def _succeeds(command: list[str | Path]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def sqlite_error(code: int, text: str = "disk I/O error") -> sqlite3.OperationalError:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def database_error(code: int) -> DatabaseError:
    """The error that a run's database makes of one of SQLite."""
    error = DatabaseError("disk I/O error")
    error.__cause__ = sqlite_error(code)
    return error
