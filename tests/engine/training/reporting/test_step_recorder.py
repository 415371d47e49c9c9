"""The means of an epoch's series, from chunks of its steps."""

import time
from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from accel_engine.events import TimeMeasured
from accel_engine.training.reporting import step_recorder
from accel_engine.training.reporting.step_recorder import Means, TimeMeter


def test_steps_count_by_their_examples() -> None:
    means = Means()
    means.add({"loss": np.float32([1, 2]), "learning_rate": np.float32([0.1, 0.1])}, 0.5, [8, 8])
    means.add({"loss": np.float32([6]), "accuracy": np.float32([0.5])}, 0.25, [4])

    assert means.value == pytest.approx({"loss": (8 + 16 + 24) / 20, "accuracy": 0.5})
    assert means.seconds == 0.75


def test_no_steps_have_no_means() -> None:
    assert (Means().value, Means().seconds) == ({}, 0.0)


class Reporter:
    """The step of a run, and its events."""

    def __init__(self) -> None:
        self.step = 0
        self.events: list[TimeMeasured] = []

    def emit(self, kind: type[TimeMeasured], **values: object) -> None:
        self.events.append(kind(time=0.0, **values))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that only the test moves."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(step_recorder, "time", Mock(wraps=time, perf_counter=lambda: now.seconds))
    return now


def test_the_time_is_split_by_what_it_is_spent_on(clock: SimpleNamespace) -> None:
    reporter, waits = Reporter(), [0.25]
    meter = TimeMeter(reporter, lambda: waits.pop() if waits else 0.0)

    def segments() -> object:
        clock.seconds += 1.5
        yield "first"
        clock.seconds += 0.5
        yield "second"

    found = [*meter.waiting(segments())]
    meter.add("steps", 4.0)
    with meter.measure("validation"):
        clock.seconds += 3.0
    reporter.step = 7
    meter.report()
    meter.report()

    assert found == [("first", 1.5), ("second", 0.5)]
    assert reporter.events == [
        TimeMeasured(
            time=0.0,
            first_step=0,
            step=7,
            seconds=5.0,
            spent={"input": 2.25, "steps": 4.0, "validation": 3.0},
        )
    ]


def test_what_is_measured_within_something_else_counts_once(clock: SimpleNamespace) -> None:
    reporter = Reporter()
    meter = TimeMeter(reporter, float)
    with meter.measure("validation") as own_seconds:
        clock.seconds += 2.0
        with meter.measure("commands"):
            clock.seconds += 600.0
            with meter.measure("commands"):
                clock.seconds += 5.0
        clock.seconds += 1.0
        validated = own_seconds()
    with suppress(KeyError), meter.measure("commands"), meter.measure("checkpoints"):
        clock.seconds += 4.0
        raise KeyError
    with meter.measure("checkpoints"):
        clock.seconds += 1.0
    reporter.step = 7
    meter.report()

    assert validated == 3.0
    assert reporter.events[0].spent == {"validation": 3.0, "commands": 605.0, "checkpoints": 5.0}
    assert reporter.events[0].seconds == 613.0


def test_it_is_written_at_intervals_and_only_after_steps(clock: SimpleNamespace) -> None:
    reporter = Reporter()
    meter = TimeMeter(reporter, float)
    for step, seconds in ((0, 20.0), (5, 0.0), (6, 4.0), (7, 6.0), (8, 2.0)):
        reporter.step, clock.seconds = step, clock.seconds + seconds
        meter.report_if_due()

    assert [(event.first_step, event.step, event.seconds) for event in reporter.events] == [(0, 5, 20.0), (5, 7, 10.0)]
