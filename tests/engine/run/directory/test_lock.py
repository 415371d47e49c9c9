import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from accel_engine.errors import RunError
from accel_engine.run.directory import lock
from accel_engine.run.directory.lock import WriterLock, is_locked, read_flag
from accel_engine.run.directory.run_paths import LOCK
from garbage import freed

HOLDER = """
import os, signal, subprocess, sys
from pathlib import Path
from accel_engine.run.directory import lock
if sys.argv[2] == "flock":
    lock._SET = lock._GET = None
held = lock.WriterLock(Path(sys.argv[1]))
match sys.argv[3]:
    case "fork":
        if os.fork():
            signal.pause()  # the child says that it is there
    case "spawn":
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], close_fds=False)
    case "close":
        os.close(os.open(Path(sys.argv[1]) / "run.lock", os.O_RDWR))
        lock.is_locked(Path(sys.argv[1]))
print("held", flush=True)
signal.pause()
"""


@pytest.fixture(params=["descriptor", "flock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of locks: open file description locks, and the locks of systems without these."""
    if request.param == "flock":
        monkeypatch.setattr(lock, "_SET", None)
        monkeypatch.setattr(lock, "_GET", None)
        monkeypatch.setattr(lock, "_RETRY_SECONDS", 0.0)
    return str(request.param)


@pytest.fixture
def hold(tmp_path: Path, kind: str) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Starts a process that holds the lock of ``tmp_path`` and then does something."""
    holders: list[subprocess.Popen[str]] = []

    def start(then: str = "") -> "subprocess.Popen[str]":
        program = [sys.executable, "-c", HOLDER, str(tmp_path), kind, then]
        holder = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, start_new_session=True)
        holders.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        return holder

    yield start
    for holder in holders:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.communicate()


def test_a_lock_is_one_s_own(tmp_path: Path, kind: str) -> None:
    assert not is_locked(tmp_path)
    with WriterLock(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(BlockingIOError):
            WriterLock(tmp_path)
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    WriterLock(tmp_path).release()
    assert stat.S_IMODE((tmp_path / LOCK).stat().st_mode) == 0o600


def test_the_end_of_a_process_frees_its_lock_however_it_ends(
    tmp_path: Path, hold: Callable[..., "subprocess.Popen[str]"]
) -> None:
    holder = hold()
    assert is_locked(tmp_path)
    with pytest.raises(BlockingIOError):
        WriterLock(tmp_path)
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie, as under a parent that does not wait
    assert not is_locked(tmp_path)
    WriterLock(tmp_path).release()


def test_a_stopped_process_keeps_its_lock(tmp_path: Path, hold: Callable[..., "subprocess.Popen[str]"]) -> None:
    holder = hold()
    holder.send_signal(signal.SIGSTOP)
    assert is_locked(tmp_path)


@pytest.mark.parametrize("child", ["fork", "spawn"])
def test_a_child_does_not_keep_its_parent_s_lock(
    tmp_path: Path, hold: Callable[[str], "subprocess.Popen[str]"], child: str
) -> None:
    holder = hold(child)
    assert is_locked(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    os.killpg(holder.pid, 0)  # the child lives
    assert not is_locked(tmp_path)


def test_a_forked_child_does_not_free_the_lock(tmp_path: Path, kind: str) -> None:
    with WriterLock(tmp_path):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        assert is_locked(tmp_path)


def test_a_forked_child_can_lock_another_run(tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with WriterLock(tmp_path):
        child = os.fork()
        if not child:
            WriterLock(other)
            os._exit(0 if is_locked(other) and len(lock._open_locks) == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_lock_that_nobody_refers_to_is_not_left_to_a_forked_child(tmp_path: Path) -> None:
    with freed():
        WriterLock(tmp_path)
    assert is_locked(tmp_path)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"1")
        signal.pause()
    assert os.read(read, 1) == b"1"
    for each in list(lock._open_locks):
        each.release()
    assert not is_locked(tmp_path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)


def test_closing_another_descriptor_keeps_the_lock(
    tmp_path: Path, hold: Callable[[str], "subprocess.Popen[str]"]
) -> None:
    hold("close")
    assert is_locked(tmp_path)


def test_asking_does_not_take_the_lock(tmp_path: Path) -> None:
    WriterLock(tmp_path).release()
    asked = os.open(tmp_path / LOCK, os.O_RDONLY)
    try:
        assert not is_locked(tmp_path)
        WriterLock(tmp_path).release()
    finally:
        os.close(asked)


def test_a_descriptor_that_a_script_closed_and_that_is_another_file_now_is_left_alone(tmp_path: Path) -> None:
    held = WriterLock(tmp_path)
    os.dup2(os.open(os.devnull, os.O_RDONLY), held._descriptor)
    number = held._descriptor
    assert not is_locked(tmp_path)
    held.release()
    os.fstat(number)  # still open
    os.close(number)


def test_a_file_system_without_locks_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.fcntl", refuse)
    with pytest.raises(RunError, match=r"No locks available; set ACCEL_TUI_HOME to a directory on a file system with"):
        WriterLock(tmp_path)
    assert not is_locked(tmp_path)


@pytest.mark.skipif(lock._SET is None, reason="locks of Linux")
def test_a_system_that_answers_with_the_other_error_of_posix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("fcntl.fcntl", refuse)
    held = lock._open_locks.copy()
    with pytest.raises(BlockingIOError):
        WriterLock(tmp_path)
    assert is_locked(tmp_path)
    assert lock._open_locks == held


def test_asking_leaves_no_file_open(tmp_path: Path, kind: str) -> None:
    with WriterLock(tmp_path):
        before = psutil.Process().num_fds()
        assert is_locked(tmp_path)
        assert read_flag(tmp_path) is None
        assert psutil.Process().num_fds() == before


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "gone")
    with pytest.raises(RunError, match="cannot open the lock of run gone: No such file"):
        WriterLock(tmp_path / "gone")


def test_a_lock_is_that_of_the_file_in_its_directory(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    with WriterLock(before) as held:
        assert held.is_current
        before.rename(after)
        assert not held.is_current
        after.rename(before)
        assert held.is_current
        (before / LOCK).unlink()
        (before / LOCK).touch()
        assert not held.is_current


def test_a_network_that_does_not_answer_moves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TimeoutError

    with WriterLock(tmp_path) as held:
        monkeypatch.setattr("accel_engine.run.directory.lock.os.stat", fail)
        assert held.is_current
        monkeypatch.undo()


def test_who_only_asks_by_flock_does_not_keep_a_writer_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_SET", None)
    monkeypatch.setattr(lock, "_GET", None)
    monkeypatch.setattr(lock, "_RETRY_SECONDS", 1e9)
    WriterLock(tmp_path).release()
    asked = os.open(tmp_path / LOCK, os.O_RDONLY)
    fcntl.flock(asked, fcntl.LOCK_SH)
    # Threads of other tests sleep, too.
    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: os.close(asked)))
    with WriterLock(tmp_path):
        assert is_locked(tmp_path)
