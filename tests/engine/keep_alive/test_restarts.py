"""Restarts are limited, and the pauses between them grow."""

import os

import pytest

from accel_engine.keep_alive.restart import Restart
from accel_engine.keep_alive.restarts import MAX_RESTARTS, Restarts


def test_pauses_grow_until_the_limit() -> None:
    restarts = Restarts()

    assert [restarts.next_pause(0) for _ in range(MAX_RESTARTS + 1)] == [1.0, 2.0, 4.0, 8.0, 16.0, None]


def test_a_newer_checkpoint_starts_the_count_again() -> None:
    restarts = Restarts()

    assert [restarts.next_pause(step) for step in (0, 0, 100, 100, 90, 200)] == [1.0, 2.0, 1.0, 2.0, 4.0, 1.0]


def test_the_longest_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "200")
    restarts = Restarts()

    assert [restarts.next_pause(0) for _ in range(2)] == [200.0, 300.0]


def test_a_new_engine_is_told_once_why_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    restart = Restart("engine lost", 120, "the engine exited", "started again", {"remat": "on"})
    assert Restart.take() is None
    for name, value in restart.environment.items():
        monkeypatch.setenv(name, value)

    assert Restart.take() == restart
    assert not restart.environment.keys() & os.environ.keys()
    event = restart.event(100)
    assert (event.trouble, event.step, event.failed_step, event.changes) == ("engine lost", 100, 120, {"remat": "on"})
