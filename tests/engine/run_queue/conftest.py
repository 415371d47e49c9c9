"""What tests of the queue share: queued runs, and no process that starts them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run_queue import queue, queue_database

Make = Callable[..., str]
"""Adds a run of some name to the queue; returns its id."""


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nobody starts queued runs; returns a list that grows each time that somebody should."""
    woken: list[str] = []
    monkeypatch.setattr(queue_database, "start_waiter", lambda: woken.append("woken"))
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    return woken


@pytest.fixture
def add(asleep: list[str]) -> Make:
    def make(name: str, **asks: object) -> str:
        directory = queued(name)
        queue.enqueue(directory, queue.QueueRequest(**asks))  # type: ignore[arg-type]
        return directory.name

    return make


def queued(name: str, **fields: object) -> Path:
    """A run that waits to be queued."""
    return run.create(Plan.from_mapping({"model": "mlp", "name": name, **fields}), queued=True)
