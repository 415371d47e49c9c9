"""What tests of a run's screen share: a run that a stand-in for the engine writes."""

import threading
from collections.abc import Iterator

import pytest

from accel_engine.plan import Plan
from accel_tui.screens import diagnostics_screen
from tui.fake_engine import FakeEngine


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    one = FakeEngine(Plan(name="first-try", epochs=4))
    one.begin().build()
    yield one
    one.close()


@pytest.fixture
def obedient(engine: FakeEngine) -> Iterator[FakeEngine]:
    """An engine that answers commands."""
    until = threading.Event()
    thread = engine.obey_in_background(until)
    yield engine
    until.set()
    thread.join(120)


@pytest.fixture
def colours_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagnostics that are read every few milliseconds, in a terminal of all colours."""
    monkeypatch.setattr(diagnostics_screen, "POLL_SECONDS", 0.05)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
