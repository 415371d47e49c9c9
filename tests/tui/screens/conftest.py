"""What tests of a run's screen share: a run that a stand-in for the engine writes."""

import threading
from collections.abc import Iterator

import pytest

from accel_engine.plan import Plan
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
