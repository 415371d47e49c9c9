"""Starting trials by the queue: at once where nothing else trains on the CPU, else in turn."""

from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import DataError
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, create
from accel_engine.run_queue import queue as run_queue
from accel_engine.run_queue.queue_database import changing_queue
from accel_engine.search import engine_runs
from accel_engine.search import engine_runs as starters
from accel_engine.search.engine_runs import QueueStarter

CPU = (Device("cpu:0", "cpu", "a processor"),)
GPU = (*CPU, Device("gpu:0", "gpu", "a graphics card"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs that are started at once; the queue has no separate process."""
    ids: list[str] = []
    monkeypatch.setattr(engine_runs.DirectStarter, "start", lambda _, directory: ids.append(directory.name))
    monkeypatch.setattr(run_queue, "ensure_waiter", lambda: None)
    return ids


def new_run() -> Path:
    return create(Plan(), queued=True, study="s", trial=0)


def test_a_run_on_the_cpu_starts_at_once_if_nothing_else_trains(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = new_run()
    QueueStarter("s", 0, CPU).start(directory)
    assert started == [directory.name]
    monkeypatch.setattr(starters, "active_runs", lambda _: ["another"])
    waits = new_run()
    QueueStarter("s", 0, CPU).start(waits)
    assert started == [directory.name]
    assert [entry.run for entry in run_queue.entries()] == [waits.name]
    several = new_run()
    QueueStarter("s", 2, CPU).start(several)
    assert started == [directory.name, several.name]
    run_queue.set_default_limit(1)
    limited = new_run()
    QueueStarter("s", 2, CPU).start(limited)
    assert [entry.run for entry in run_queue.entries()] == [waits.name, limited.name]


def test_a_run_on_an_accelerator_waits_in_the_queue_once_and_can_be_cancelled(started: list[str]) -> None:
    directory = new_run()
    starter = QueueStarter("s", 3, GPU)
    starter.start(directory)
    starter.start(directory)
    (entry,) = run_queue.entries()
    assert (entry.run, entry.request.group, entry.request.at_once, started) == (directory.name, "s", 3, [])
    starter.cancel(directory)
    assert run_queue.entries() == []
    reader = RunReader(directory)
    assert reader.info().status is Status.STOPPED
    reader.close()


def test_why_the_queue_holds_a_run_and_a_queue_that_was_deleted(started: list[str]) -> None:
    directory = new_run()
    starter = QueueStarter("s", 1, GPU)
    assert starter.start(directory) == ""
    run_queue.hold(directory.name)
    assert starter.start(directory).startswith("held by ")
    with changing_queue() as queue:
        entry = queue.find(directory.name)
        assert entry is not None
        queue.put(replace(entry, hold_reason="cannot be started: its data is gone"))
    with pytest.raises(DataError, match="cannot be started: its data is gone"):
        starter.start(directory)
    with changing_queue() as queue:
        queue.remove(directory.name)
    assert starter.start(directory) == ""
    assert [entry.run for entry in run_queue.entries()] == [directory.name]
    assert started == []
