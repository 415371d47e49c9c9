"""A run to write into and read from."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create


@pytest.fixture
def directory() -> Path:
    """A new run, waiting for an engine."""
    return create(Plan(name="first try"))


@pytest.fixture
def writer(directory: Path) -> Iterator[RunWriter]:
    """What its engine writes with."""
    with closing(RunWriter(directory)) as writer:
        yield writer


@pytest.fixture
def reader(directory: Path) -> Iterator[RunReader]:
    """What a dashboard reads it with."""
    with closing(RunReader(directory)) as reader:
        yield reader


@pytest.fixture
def ended(directory: Path, writer: RunWriter) -> Path:
    """A run that has finished."""
    writer.begin()
    writer.write_event(
        RunEnded(time=9.0, outcome=Outcome.FINISHED, steps=0, epochs=0, seconds=1.0, steps_per_second=0.0, metrics={})
    )
    return directory
