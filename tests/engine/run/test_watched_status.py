"""The status of a run whose engine will be started again."""

from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.events import Outcome, RunEnded, RunStarted
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import WATCHER_LOCK


def written(plan: Plan, ended: RunEnded | None) -> Path:
    """A run whose writer has ended, or is lost."""
    directory = run.create(plan)
    writer = RunWriter(directory)
    writer.begin(
        RunStarted(time=1.0, run=directory.name, name="", plan={}, first_step=0, pid=1, host="", versions={}, worker="")
    )
    if ended:
        writer.end(ended)
    else:
        writer.close()
    return directory


def statuses(directory: Path) -> tuple[Status, Status]:
    with closing(RunReader(directory)) as reader:
        return reader.info().status, reader.info(watched=False).status


def an_end(outcome: Outcome, *, temporary: bool) -> RunEnded:
    return RunEnded(time=2.0, outcome=outcome, steps=3, epochs=0, seconds=1.0, temporary=temporary)


@pytest.mark.parametrize(
    ("ended", "without", "with_watcher"),
    [
        (None, Status.LOST, Status.STARTING),
        (an_end(Outcome.FAILED, temporary=True), Status.FAILED, Status.STARTING),
        (an_end(Outcome.STOPPED, temporary=True), Status.STOPPED, Status.STARTING),
        (an_end(Outcome.FAILED, temporary=False), Status.FAILED, Status.FAILED),
        (an_end(Outcome.STOPPED, temporary=False), Status.STOPPED, Status.STOPPED),
        (an_end(Outcome.FINISHED, temporary=False), Status.FINISHED, Status.FINISHED),
    ],
)
def test_a_run_that_will_be_started_again_is_starting(
    ended: RunEnded | None, without: Status, with_watcher: Status
) -> None:
    directory = written(Plan(keep_alive="on"), ended)
    assert statuses(directory) == (without, without)
    with WriterLock(directory, WATCHER_LOCK):
        assert statuses(directory) == (with_watcher, without)
    assert statuses(directory) == (without, without)


def test_other_plans_are_not_watched() -> None:
    directory = written(Plan(), None)
    with WriterLock(directory, WATCHER_LOCK):
        assert statuses(directory) == (Status.LOST, Status.LOST)


def test_only_one_process_watches_a_run() -> None:
    directory = written(Plan(keep_alive="on"), None)
    with WriterLock(directory, WATCHER_LOCK), pytest.raises(BlockingIOError):
        WriterLock(directory, WATCHER_LOCK)
