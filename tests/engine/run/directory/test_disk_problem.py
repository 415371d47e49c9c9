"""Which errors come from a disk."""

import errno
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from accel_engine import run
from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded, Warned
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, send_command
from accel_engine.run.directory import disk_problem as module
from accel_engine.run.directory.disk_problem import (
    END_BYTES,
    RESERVE_BYTES,
    DiskProblem,
    DiskWait,
    Reserve,
    disk_problem,
    may_pass,
)
from accel_engine.run.directory.lock import WriterLock, read_flag
from accel_engine.run.engine.commands import COMMANDS
from accel_engine.run.store import sample_packing
from accel_engine.versioned_database import WRITING, database_errors
from full_disk import database_error, fail, failing_disk, filled, small_disk, sqlite_error
from recorded_run import put


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
        (sqlite3.SQLITE_PROTOCOL, None),
        (sqlite3.SQLITE_NOMEM, None),
        (sqlite3.SQLITE_ERROR, None),
        (sqlite3.SQLITE_CORRUPT, None),
        (sqlite3.SQLITE_CONSTRAINT_NOTNULL, None),
    ],
)
def test_an_error_of_sqlite_is_told_by_its_code(tmp_path: Path, code: int, problem: DiskProblem | None) -> None:
    with pytest.raises(RunError) as raised, database_errors("the run", WRITING):
        raise sqlite_error(code, "database or disk is full")
    assert disk_problem(raised.value, tmp_path) is problem
    passes = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM)
    assert may_pass(raised.value, tmp_path) is (problem is not None or code in passes)
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


Wait = Callable[..., None]
TRAINING = PhaseChanged(time=1.0, phase=Phase.TRAINING)


class StopError(Exception):
    """What a user's stop raises."""


class Disk:
    """The database of a writer, whose writes fail with a code."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.code: int | None = None
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._database, name)
        if not name.startswith(("add_", "set_", "answer", "delete_")):
            return method

        def write(*arguments: Any, **named: Any) -> Any:
            if self.code is not None:
                self.tries += 1
                raise database_error(self.code)
            return method(*arguments, **named)

        return write


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.001)


@pytest.fixture
def waiting(directory: Path) -> Iterator[RunWriter]:
    """An engine's writer, which waits for the disk."""
    with closing(RunWriter(directory, waits=True)) as writer:
        writer.begin()
        yield writer


@pytest.fixture
def disk(waiting: RunWriter, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Its disk."""
    made = Disk(waiting._database)
    monkeypatch.setattr(waiting, "_database", made)
    return made


def in_thread(write: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=write)
    thread.start()
    return thread


def events(directory: Path) -> list[Any]:
    with closing(RunReader(directory)) as reader:
        return list(reader.poll().events)


@pytest.mark.parametrize(
    ("code", "problem"),
    [(sqlite3.SQLITE_FULL, DiskProblem.FULL), (sqlite3.SQLITE_READONLY_CANTLOCK, DiskProblem.READ_ONLY)],
)
def test_a_write_waits_and_everybody_sees_it(
    directory: Path, waiting: RunWriter, disk: Disk, wait_until: Wait, code: int, problem: DiskProblem
) -> None:
    disk.code = code
    writing = in_thread(lambda: waiting.write_event(TRAINING))
    wait_until(lambda: disk.tries > 3, "more tries")
    (summary,) = run.list_runs()
    assert summary.info is not None
    assert (summary.status, summary.info.waiting) == (Status.RUNNING, problem)
    for name in set(COMMANDS) - {"stop", "stop_now"}:
        waits = f"{problem.waiting}: {name.replace('_', ' ')} has to wait; only stop works until then; it was not sent"
        with pytest.raises(RunError, match=f"^{waits}$"):
            send_command(directory, name)
    assert send_command(directory, "stop")
    assert [command.name for command in waiting.commands()] == ["stop"]

    disk.code = None
    writing.join()

    with closing(RunReader(directory)) as reader:
        assert reader.info().waiting is None
    first, warning = events(directory)
    assert first.phase is Phase.TRAINING
    assert isinstance(warning, Warned)
    assert warning.message.startswith(f"{problem}: waited 0 s ")


def test_the_words_of_each_problem() -> None:
    assert [problem.waiting for problem in DiskProblem] == [
        "disk full: waiting for space",
        "disk quota reached: waiting for space",
        "read-only disk: waiting to write again",
        "disk I/O error: waiting to write again",
    ]


def test_other_errors_are_raised_at_once(waiting: RunWriter, disk: Disk) -> None:
    disk.code = sqlite3.SQLITE_BUSY
    with pytest.raises(RunError):
        waiting.write_event(TRAINING)
    assert disk.tries == 1


def test_a_writer_that_does_not_wait_raises_at_once(
    directory: Path, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(writer._database)
    monkeypatch.setattr(writer, "_database", disk)
    disk.code = sqlite3.SQLITE_FULL
    with pytest.raises(RunError):
        writer.write_event(TRAINING)


def test_a_stop_ends_the_waiting(directory: Path, waiting: RunWriter, disk: Disk, wait_until: Wait) -> None:
    disk.code = sqlite3.SQLITE_FULL
    raised: list[BaseException] = []

    def write() -> None:
        with pytest.raises(StopError) as found:
            waiting.write_event(TRAINING)
        raised.append(found.value)

    writing = in_thread(write)
    wait_until(lambda: disk.tries, "a try")
    waiting.disk.stop_waiting(StopError)
    writing.join()

    assert raised[0].args == (DiskProblem.FULL,)
    assert waiting.disk.problem is None
    tries = disk.tries
    with pytest.raises(StopError):
        waiting.write_event(TRAINING)
    assert disk.tries == tries + 2  # once more, as there may be room by now
    disk.code = None
    waiting.write_event(TRAINING)


def test_steps_that_replace_others_replace_them_after_a_wait(
    directory: Path, waiting: RunWriter, disk: Disk, wait_until: Wait
) -> None:
    waiting.write_chunk(0, 0.0, 1.0, {"loss": np.zeros(8)})
    disk.code = sqlite3.SQLITE_FULL
    writing = in_thread(lambda: waiting.write_chunk(4, 1.0, 2.0, {"loss": np.ones(2)}))
    wait_until(lambda: disk.tries > 2, "more tries")
    disk.code = None
    writing.join()

    with closing(RunReader(directory)) as reader:
        chunks = reader.poll().chunks
    assert np.concatenate([chunk.series["loss"] for chunk in chunks]).tolist() == [0, 0, 0, 0, 1, 1]


def test_a_rolled_back_deletion_is_repeated(
    directory: Path, waiting: RunWriter, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.write_chunk(0, 0.0, 1.0, {"loss": np.zeros(8)})
    add, calls = disk._database.add_chunk, []

    def fail_once(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise database_error(sqlite3.SQLITE_FULL)
        add(*arguments)

    monkeypatch.setattr(disk._database, "add_chunk", fail_once)
    waiting.write_chunk(4, 1.0, 2.0, {"loss": np.ones(2)})

    with closing(RunReader(directory)) as reader:
        chunks = reader.poll().chunks
    assert [(chunk.first_step, len(chunk.series["loss"])) for chunk in chunks] == [(0, 4), (4, 2)]


def test_samples_are_held_in_memory_and_dropped_ones_counted(
    directory: Path, waiting: RunWriter, disk: Disk, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_packing, "MAX_UNWRITTEN", 3)
    waiting._unwritten_samples = sample_packing.UnwrittenSamples()
    disk.code = sqlite3.SQLITE_FULL
    with pytest.raises(RunError):
        waiting.write_samples([Sample(0.0, "cpu:0")])
    writing = in_thread(lambda: waiting.write_event(TRAINING))
    wait_until(lambda: waiting.disk.problem, "waiting")
    for time in range(1, 5):
        waiting.write_samples([Sample(float(time), "cpu:0")])
    disk.code = None
    writing.join()
    waiting.write_samples([Sample(5.0, "cpu:0")])

    with closing(RunReader(directory)) as reader:
        assert [sample.time for sample in reader.poll().samples] == [3.0, 4.0, 5.0]
    assert events(directory)[1].message.endswith("; 2 device samples that did not fit in memory are missing")


@pytest.mark.parametrize(("code", "written"), [(None, [0.0, 1.0]), (sqlite3.SQLITE_FULL, [])], ids=["room", "full"])
def test_the_end_writes_held_samples_or_counts_them(
    directory: Path, waiting: RunWriter, monkeypatch: pytest.MonkeyPatch, code: int | None, written: list[float]
) -> None:
    add = waiting._database.add_samples
    codes = [sqlite3.SQLITE_FULL, sqlite3.SQLITE_FULL, code]

    def add_samples(rows: Any) -> None:
        if problem := codes.pop(0):
            raise database_error(problem)
        add(rows)

    monkeypatch.setattr(waiting._database, "add_samples", add_samples)
    for time in (0.0, 1.0):
        with pytest.raises(RunError):
            waiting.write_samples([Sample(time, "cpu:0")])
    waiting.end(RunEnded(time=2.0, outcome=Outcome.FINISHED, steps=0, epochs=0, seconds=1.0))

    with closing(RunReader(directory)) as reader:
        assert [sample.time for sample in reader.poll().samples] == written
    told = [event.message for event in events(directory) if isinstance(event, Warned)]
    assert told == ([] if written else ["2 device samples that could not be written are missing"])


def test_a_run_begins_when_there_is_room(directory: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait) -> None:
    with closing(RunWriter(directory, waits=True)) as writer:
        disk = Disk(writer._database)
        monkeypatch.setattr(writer, "_database", disk)
        disk.code = sqlite3.SQLITE_FULL
        beginning = in_thread(writer.begin)
        wait_until(lambda: disk.tries > 1, "more tries")
        assert read_flag(directory) == 0
        disk.code = None
        beginning.join()


def test_the_reserve_is_freed_in_two_steps(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, RESERVE_BYTES)
    assert os.listdir(tmp_path) == []  # nothing is left after a kill
    assert reserve._descriptor is not None
    for size in (RESERVE_BYTES, END_BYTES, 0):
        reserve.shrink(size)
        assert os.fstat(reserve._descriptor).st_size == size
    reserve.shrink(END_BYTES)
    assert os.fstat(reserve._descriptor).st_size == 0


def test_expensive_tries_are_rarer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    now = [0.0]
    disk = DiskWait(tmp_path, lambda _: None)
    monkeypatch.setattr(module, "time", Mock(wraps=module.time, monotonic=lambda: now[0]))

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return False

    monkeypatch.setattr(disk._stopping, "wait", wait)

    def save() -> None:
        now[0] += 3.0
        if len(waits) < 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    disk.repeat(save, lambda *_: None)
    assert waits == [30.0, 30.0]


def test_each_wait_is_shown_and_its_end(tmp_path: Path) -> None:
    shown: list[DiskProblem | None] = []
    disk = DiskWait(tmp_path, shown.append)
    for _ in range(2):
        errors = [OSError(code, os.strerror(code)) for code in (errno.ENOSPC, errno.ENOSPC, errno.EROFS)]

        def save(errors: list[OSError] = errors) -> str:
            if errors:
                raise errors.pop(0)
            return "saved"

        assert disk.repeat(save, lambda *_: None) == "saved"
    assert shown == 2 * [DiskProblem.FULL, DiskProblem.READ_ONLY, None]


def test_the_end_of_a_run_has_all_that_was_set_aside(tmp_path: Path) -> None:
    disk = DiskWait(tmp_path, lambda _: None)
    disk.free_all()  # nothing yet
    disk.set_aside()
    assert disk._reserve is not None
    descriptor = disk._reserve._descriptor
    assert descriptor is not None
    sizes = [os.fstat(descriptor).st_size]
    disk.stop_waiting(StopError)
    sizes.append(os.fstat(descriptor).st_size)
    disk.free_all()
    assert [*sizes, os.fstat(descriptor).st_size] == [RESERVE_BYTES, END_BYTES, 0]


def test_a_flag_is_seen_by_others_and_gone_with_the_lock(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path)
    for number in (0, 3, 1):
        lock.set_flag(number)
        assert read_flag(tmp_path) == number
    with pytest.raises(BlockingIOError):
        WriterLock(tmp_path)
    lock.set_flag(None)
    assert read_flag(tmp_path) is None
    lock.set_flag(2)
    lock.release()
    assert read_flag(tmp_path) is None
    assert read_flag(tmp_path / "gone") is None


@pytest.mark.parametrize(("name", "signals"), [("stop", ["SIGINT"]), ("stop_now", ["SIGINT", "SIGTERM"])])
def test_a_stop_that_cannot_be_written_is_a_signal(
    directory: Path, waiting: RunWriter, monkeypatch: pytest.MonkeyPatch, name: str, signals: list[str]
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append(signal.Signals(number).name))

    def refuse(*_: object) -> None:
        raise database_error(sqlite3.SQLITE_FULL)

    monkeypatch.setattr("accel_engine.run.store.database.RunDatabase.add_command", refuse)
    assert send_command(directory, name) == 0
    assert sent == signals
    with pytest.raises(RunError, match=r"^disk full: the command cannot be written.* only stop works until then$"):
        send_command(directory, "pause")
    assert sent == signals
    waiting.end(RunEnded(time=2.0, outcome=Outcome.STOPPED, steps=0, epochs=0, seconds=1.0))
    with pytest.raises(RunError, match="only a live run takes commands"):
        send_command(directory, name)


@pytest.mark.parametrize(
    ("meta", "advice"),
    [
        ({"script": "train.py"}, "; interrupt the script itself, or make room"),
        ({"process": None, "host": "box"}, f"; send SIGINT to process {os.getpid()} on box to stop it, or make room"),
        ({}, f", and process {os.getpid()} gets no signal: Operation not permitted"),
    ],
    ids=["script", "another computer", "not permitted"],
)
def test_a_stop_without_a_signal_says_what_to_do(
    directory: Path, waiting: RunWriter, monkeypatch: pytest.MonkeyPatch, meta: dict[str, Any], advice: str
) -> None:
    def refuse(*_: object) -> None:
        raise database_error(sqlite3.SQLITE_FULL)

    def forbid(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    put(directory, **meta)
    monkeypatch.setattr("accel_engine.run.store.database.RunDatabase.add_command", refuse)
    monkeypatch.setattr(os, "kill", forbid)
    with pytest.raises(RunError, match=f"^disk full: the command cannot be written{advice}$"):
        send_command(directory, "stop")


def test_a_command_that_fails_for_another_reason_is_no_signal(
    directory: Path, waiting: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise database_error(sqlite3.SQLITE_BUSY)

    monkeypatch.setattr("accel_engine.run.store.database.RunDatabase.add_command", refuse)
    with pytest.raises(RunError, match="disk I/O error"):
        send_command(directory, "stop")


def test_a_real_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait) -> None:
    with small_disk(tmp_path / "disk", 2) as disk:
        monkeypatch.setenv("ACCEL_TUI_HOME", str(disk / "home"))
        directory = run.create(Plan(name="on a small disk"))
        with closing(RunWriter(directory, waits=True)) as writer:
            writer.begin()
            written = 0

            def write() -> None:
                nonlocal written
                for chunk in range(60):
                    writer.write_chunk(100 * chunk, chunk, chunk + 1, {"loss": np.arange(100) + 100 * chunk})
                    written = chunk

            with filled(disk, leaving=1 << 16):
                writing = in_thread(write)
                wait_until(lambda: writer.disk.problem, "a full disk")
                stuck = written
                with closing(RunReader(directory)) as reader:
                    assert reader.info().waiting is DiskProblem.FULL
            writing.join()
        assert 0 < stuck < 59
        with closing(RunReader(directory)) as reader:
            update = reader.poll()
        losses = np.concatenate([chunk.series["loss"] for chunk in update.chunks])
        np.testing.assert_array_equal(losses, np.arange(6000))


def test_a_disk_that_becomes_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait) -> None:
    with failing_disk(tmp_path / "disk") as disk:
        monkeypatch.setenv("ACCEL_TUI_HOME", str(disk / "home"))
        directory = run.create(Plan(name="on a disk that fails"))
        with closing(RunWriter(directory, waits=True)) as writer:
            writer.begin()
            fail(disk)
            raised: list[BaseException] = []

            def write() -> None:
                with pytest.raises(StopError) as found:
                    writer.write_event(TRAINING)
                raised.append(found.value)

            writing = in_thread(write)
            wait_until(lambda: writer.disk.problem, "a wait")
            (summary,) = run.list_runs()
            assert summary.info is not None
            assert summary.info.waiting is DiskProblem.READ_ONLY
            writer.disk.stop_waiting(StopError)
            writing.join()
            assert raised[0].args == (DiskProblem.READ_ONLY,)
