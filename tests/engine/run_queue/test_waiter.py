"""What the process that starts runs does, on engines that are never started."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine import run
from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.run import RunReader, RunWriter, Status
from accel_engine.run.store.database import writing
from accel_engine.run_queue import queue
from accel_engine.run_queue.free_devices import MachineReader
from accel_engine.run_queue.queue_database import changing_queue, open_queue, read_entries
from accel_engine.run_queue.waiter import Waiter
from engine.run_queue.conftest import Make, queued
from tui.fake_engine import FakeEngine


class StubProcess:
    returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode


class Engines:
    """Engines that are started, and never run."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.writers: list[RunWriter] = []
        self.problem = ""

    def start(self, directory: Path, environment: Mapping[str, str] | None = None) -> Any:
        if self.problem:
            raise RunError(self.problem)
        self.started.append(directory.name)
        with writing(directory) as database:  # as assign_process does, of a process that lives
            database.set_meta(queued=None, pending=None)
        self.writers.append(writer := RunWriter(directory))
        writer.begin()
        return StubProcess()

    def lose(self, run_id: str) -> None:
        """End the process of a run, which this test's own one stands in for."""
        self.writers[self.started.index(run_id)].close()
        with writing(run.runs_directory() / run_id) as database:
            database.set_meta(process=None)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    found = Engines()
    monkeypatch.setattr(engine_process, "start_engine", found.start)
    yield found
    for writer in found.writers:
        writer.close()


@pytest.fixture
def waiter(home: Path, asleep: list[str]) -> Iterator[Waiter]:
    home.mkdir(parents=True)
    with open_queue() as database, closing(Waiter(database, MachineReader([]))) as found:
        yield found


def status(run_id: str) -> Status:
    with closing(RunReader(run.runs_directory() / run_id, steps=False)) as reader:
        return reader.info().status


def test_one_run_starts_and_the_others_say_why_they_wait(waiter: Waiter, engines: Engines, add: Make) -> None:
    first, second = add("first"), add("second")

    waiter.start_runs()
    waiter.start_runs()

    assert engines.started == [first]
    assert [(entry.run, entry.is_started) for entry in queue.entries()] == [(first, True), (second, False)]
    assert queue.entries()[1].reason == f"{first} trains; one at once on the CPU"
    assert waiter.has_work()


def test_the_next_run_starts_when_one_has_ended(waiter: Waiter, engines: Engines, add: Make) -> None:
    first, second = add("first"), add("second", priority=-1)
    waiter.start_runs()
    engines.lose(first)

    waiter.start_runs()

    assert engines.started == [first, second]
    assert [entry.run for entry in read_entries()] == [second]
    assert not waiter.has_work()


def test_a_run_that_a_user_has_started_is_waited_for(waiter: Waiter, engines: Engines, add: Make) -> None:
    one = add("one")
    with closing(FakeEngine(Plan(name="mine"))) as mine:
        mine.begin().build()
        waiter.start_runs()
        assert not engines.started
        assert queue.entries()[0].reason == f"{mine.directory.name} trains; one at once on the CPU"

    waiter.start_runs()
    assert engines.started == [one]


def test_a_limit_holds_for_all(waiter: Waiter, engines: Engines, add: Make) -> None:
    runs = [add(name) for name in ("a", "b", "c")]
    queue.set_limit(2)

    waiter.start_runs()

    assert engines.started == runs[:2]


def test_a_run_that_cannot_be_started_is_held_with_the_reason(waiter: Waiter, engines: Engines, add: Make) -> None:
    one = add("one")
    engines.problem = "no memory for a process"

    waiter.start_runs()

    (entry,) = queue.entries()
    assert (entry.is_held, entry.reason) == (True, "cannot be started: no memory for a process")
    assert not waiter.has_work()
    engines.problem = ""
    queue.release(one)
    waiter.start_runs()
    assert engines.started == [one]


def test_a_plan_that_no_longer_fits_is_held(waiter: Waiter, engines: Engines, asleep: list[str]) -> None:
    directory = queued("one", devices="gpu:3")
    queue.enqueue(directory)

    waiter.start_runs()

    assert queue.entries()[0].is_held
    assert "no device gpu:3" in queue.entries()[0].reason
    assert not engines.started


def test_held_and_cancelled_runs_are_not_started(waiter: Waiter, engines: Engines, add: Make) -> None:
    held, cancelled = add("held"), add("cancelled")
    queue.hold(held)
    queue.cancel(cancelled)

    waiter.start_runs()
    for each in (held, cancelled):
        waiter._start(each, ())  # as if it had been decided just before

    assert not engines.started
    assert status(cancelled) is Status.STOPPED
    assert not waiter.has_work()


def test_a_run_waits_for_another_to_finish(waiter: Waiter, engines: Engines, add: Make) -> None:
    queue.set_limit(5)
    first = add("first")
    second = add("second", after=(first,), priority=9)

    waiter.start_runs()
    assert engines.started == [first]
    assert waiter.has_work()
    engines.lose(first)
    waiter.start_runs()

    assert engines.started == [first]
    assert queue.entries()[0].reason == f"run {first} was lost"
    assert not waiter.has_work()
    queue.release(second)
    waiter.start_runs()
    assert engines.started == [first, second]


def test_a_deleted_run_leaves_the_queue(waiter: Waiter, engines: Engines, add: Make) -> None:
    shutil.rmtree(run.runs_directory() / add("one"))

    waiter.start_runs()

    assert read_entries() == []
    assert not engines.started


def test_a_run_that_cannot_be_read_stays_in_the_queue(waiter: Waiter, engines: Engines, add: Make) -> None:
    one = add("one")
    (run.runs_directory() / one / "run.db").write_bytes(b"damaged" * 1000)

    waiter.start_runs()

    assert [entry.run for entry in read_entries()] == [one]


def test_what_a_process_was_killed_at_is_finished(
    waiter: Waiter, engines: Engines, add: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled, started = add("cancelled"), add("started")
    with changing_queue() as database:
        for name, state in ((cancelled, "cancelled"), (started, "started")):
            entry = database.find(name)
            assert entry
            database.put(replace(entry, state=state))

    waiter.start_runs()
    assert engines.started == [started]
    assert status(cancelled) is Status.QUEUED  # by a process that may still live
    assert waiter.has_work()
    monkeypatch.setattr("accel_engine.run_queue.waiter.CANCEL_SECONDS", 0.0)
    waiter.start_runs()

    assert status(cancelled) is Status.STOPPED
    assert not waiter.has_work()


def test_looking_again_waits_for_a_change(waiter: Waiter, add: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of the queue ends the wait, which would be far longer."""
    monkeypatch.setattr("accel_engine.run_queue.waiter.LOOK_SECONDS", 600.0)
    monkeypatch.setattr("accel_engine.run_queue.waiter.time.sleep", lambda _: add("one"))

    waiter.wait_for_change()

    assert len(read_entries()) == 1
