"""Adding to the queue, listing and changing it."""

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.events import Outcome
from accel_engine.places.own_process import set_place
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status
from accel_engine.run.engine.commands import Command
from accel_engine.run.runs.removal import remove
from accel_engine.run.store.database import writing
from accel_engine.run.store.meta import PlacedRun
from accel_engine.run.writing.waiting_run import end_waiting
from accel_engine.run_queue import queue
from accel_engine.run_queue.queue_database import DATABASE, changing_queue
from accel_engine.run_queue.queue_entries import QueueRequest
from engine.run_queue.conftest import Make, queued
from tui.fake_engine import FakeEngine


def waiting() -> list[str]:
    """The runs that wait, in order."""
    return [entry.run for entry in queue.entries() if not entry.is_started]


def status(run_id: str) -> Status:
    with closing(RunReader(run.runs_directory() / run_id, steps=False)) as reader:
        return reader.info().status


def ended(outcome: Outcome) -> str:
    """A run that has ended."""
    engine = FakeEngine(Plan(model="mlp", name="earlier"))
    engine.begin().build().train(10)
    engine.save()
    engine.end(outcome)
    engine.close()
    return engine.directory.name


def start(run_id: str) -> None:
    """What the process that starts runs notes."""
    from dataclasses import replace

    with changing_queue() as database:
        entry = database.find(run_id)
        assert entry
        database.put(replace(entry, state="started"))


def test_runs_wait_in_the_order_in_which_they_were_added(add: Make, home: Path, asleep: list[str]) -> None:
    runs = [add(name) for name in ("one", "two", "three")]

    assert waiting() == runs
    assert [entry.position for entry in queue.entries()] == [1, 2, 3]
    assert all(status(each) is Status.QUEUED for each in runs)
    assert len(asleep) == 3
    assert stat.S_IMODE((home / DATABASE).stat().st_mode) == 0o600


def test_an_empty_queue_creates_nothing(home: Path) -> None:
    assert queue.entries() == []
    queue.ensure_waiter()
    assert not home.exists()


def test_higher_priorities_come_first(add: Make) -> None:
    low, high, other = add("low"), add("high", priority=5), add("other")

    assert waiting() == [high, low, other]
    queue.set_priority(other, 9)
    assert waiting() == [other, high, low]
    with pytest.raises(UsageError, match="a priority is a whole number from"):
        queue.set_priority(other, 10**9)


def test_a_run_moves_and_takes_the_priority_of_its_place(add: Make) -> None:
    high, low, last = add("high", priority=5), add("low"), add("last", priority=-1)

    queue.move(last, 1)
    assert waiting() == [last, high, low]
    assert queue.entries()[0].request.priority == 5
    queue.move(last, 99)
    assert waiting() == [high, low, last]
    assert queue.entries()[2].request.priority == 0
    queue.move(high, 2)
    assert waiting() == [low, high, last]


def test_a_held_run_says_who_holds_it(add: Make) -> None:
    one = add("one")
    queue.hold(one)

    (entry,) = queue.entries()
    assert entry.is_held
    assert entry.reason.startswith("held by ")
    queue.release(one)
    assert not queue.entries()[0].is_held


def test_a_cancelled_run_is_stopped_and_keeps_its_plan(add: Make) -> None:
    one = add("one")
    queue.cancel(one)

    assert waiting() == []
    with closing(RunReader(run.runs_directory() / one)) as reader:
        info = reader.info()
    assert info.status is Status.STOPPED
    assert info.plan_values["name"] == "one"
    assert "cancelled in the queue by" in run.list_runs()[0].reason
    with pytest.raises(UsageError, match="is not in the queue"):
        queue.cancel(one)


def test_a_run_that_another_process_ends_meanwhile(asleep: list[str]) -> None:
    directory = queued("one")
    with closing(FakeEngine(directory=directory)) as other:
        other.writer.begin()
        with writing(directory) as database:
            database.set_meta(queued=1)  # as it was when this process looked
        with pytest.raises(RunError, match="already being trained"):
            end_waiting(directory, "cancelled")
        with writing(directory) as database:
            database.set_meta(queued=None)
        end_waiting(directory, "cancelled")


def test_a_cancelled_continuation_is_as_it_was(asleep: list[str]) -> None:
    one = ended(Outcome.STOPPED)
    directory = run.runs_directory() / one
    set_place(directory, PlacedRun("slurm", "7"))
    before = run.read_run(directory)
    run.reopen(directory, Plan(model="mlp", name="earlier", epochs=50, learning_rate=3.0), queued=True)
    queue.enqueue(directory)
    assert status(one) is Status.QUEUED

    queue.cancel(one)

    assert run.read_run(directory) == before
    assert status(one) is Status.STOPPED
    assert run.list_runs()[0].steps == 10


def test_a_cancelled_continuation_that_an_earlier_version_has_queued_is_as_it_had_ended() -> None:
    one = ended(Outcome.FINISHED)
    directory = run.runs_directory() / one
    run.reopen(directory, Plan(model="mlp", name="earlier", epochs=50), queued=True)
    with writing(directory) as database:
        database.set_meta(before=None)

    end_waiting(directory, "cancelled")

    assert status(one) is Status.FINISHED
    assert run.list_runs()[0].steps == 10


def test_cancelling_a_started_run_asks_it_to_stop(add: Make) -> None:
    one = add("one")
    start(one)
    directory = run.runs_directory() / one

    queue.cancel(one)

    with closing(RunReader(directory)) as reader:
        assert reader.info().status is Status.QUEUED  # its engine has not begun yet, and will find the command
    with writing(directory) as database:
        (command,) = database.unanswered(Command)
    assert command.name == "stop"
    with pytest.raises(UsageError, match="it was started"):
        queue.hold(one)


def test_only_queued_runs_can_be_added(asleep: list[str]) -> None:
    plain = run.create(Plan(model="mlp"))

    with pytest.raises(RunError, match="is starting: only a new or a reopened run can be queued"):
        queue.enqueue(plain)
    with pytest.raises(RunError, match="is deleted"):
        queue.enqueue(plain.with_name("gone"))
    assert waiting() == []


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (QueueRequest(after=("nope",)), "there is no run nope to wait for"),
        (QueueRequest(devices=0), "at least one device, not 0"),
        (QueueRequest(at_once=-1), "it must be 0, for no limit, or more"),
        (QueueRequest(priority=-(10**7)), "a priority is"),
    ],
)
def test_a_wrong_request_is_refused(request_: QueueRequest, problem: str, asleep: list[str]) -> None:
    with pytest.raises(UsageError, match=problem):
        queue.enqueue(queued("one"), request_)
    assert waiting() == []


def test_runs_cannot_wait_for_each_other(add: Make) -> None:
    first = add("first")
    second = add("second", after=(first,))
    third = add("third", after=(second,))
    queue.cancel(first)
    directory = run.runs_directory() / first
    with writing(directory) as database:
        database.set_meta(queued=1)

    with pytest.raises(UsageError, match=f"{third} after {second} after {first}"):
        queue.enqueue(directory, QueueRequest(after=(third,)))
    with pytest.raises(UsageError, match="cannot wait for itself"):
        queue.enqueue(directory, QueueRequest(after=(first,)))


@pytest.mark.parametrize(
    ("outcome", "reason"), [(Outcome.FAILED, "failed"), (Outcome.STOPPED, "was stopped"), (Outcome.FINISHED, "")]
)
def test_a_run_after_one_that_has_ended(outcome: Outcome, reason: str, add: Make) -> None:
    before = ended(outcome)
    one = add("one", after=(before,))

    (entry,) = queue.entries()
    assert entry.is_held is bool(reason)
    assert entry.reason == (f"run {before} {reason}" if reason else "")
    queue.release(one)
    assert not queue.entries()[0].is_held
    assert queue.entries()[0].request.after == (() if reason else (before,))


def test_a_run_after_a_deleted_one_is_held(add: Make) -> None:
    before = ended(Outcome.FINISHED)
    add("one", after=(before,))
    remove(run.runs_directory() / before)

    assert queue.entries()[0].reason == f"run {before} was deleted"
    assert queue.entries()[0].is_held


def test_a_run_after_a_live_one_says_so(add: Make) -> None:
    first = add("first")
    add("second", after=(first,))

    assert [entry.reason for entry in queue.entries()] == ["", f"after {first}"]


def test_a_queued_run_without_an_entry_can_be_added_or_ended(asleep: list[str]) -> None:
    """Its command was killed before it added one."""
    one, two = queued("one").name, queued("two").name

    queue.release(one)
    assert waiting() == [one]
    queue.cancel(two)
    assert status(two) is Status.STOPPED


def test_the_limit_is_that_of_the_user_or_else_of_the_settings() -> None:
    assert queue.limit() is None
    queue.set_default_limit(3)
    assert queue.limit() == 3
    queue.set_limit(2)
    queue.set_default_limit(4)
    assert queue.limit() == 2
    queue.set_limit(None)
    assert queue.limit() == 4
    with pytest.raises(UsageError, match="at least one run at once"):
        queue.set_limit(0)


def test_a_queue_that_cannot_be_read_says_so(home: Path, add: Make) -> None:
    add("one")
    (home / DATABASE).write_bytes(b"no database at all" * 100)
    for suffix in ("-wal", "-shm"):
        (home / f"{DATABASE}{suffix}").unlink(missing_ok=True)

    with pytest.raises(AccelError, match=r"is damaged .*accel-tui queue release RUN"):
        queue.entries()
    queue.ensure_waiter()  # never raises


def test_a_queue_of_a_newer_program_is_refused(add: Make) -> None:
    add("one")
    with changing_queue() as database:
        database.set_meta(schema=99)

    with pytest.raises(RunError, match="was created by a newer accel-tui"):
        queue.entries()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written(home: Path, add: Make) -> None:
    add("one")
    home.chmod(0o500)
    try:
        with pytest.raises(RunError, match="cannot"):
            add("two")
    finally:
        home.chmod(0o700)
