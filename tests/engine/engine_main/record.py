"""Reads runs in the tests of engine processes."""

from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.events import Event, RunEnded
from accel_engine.run.directory.disk_problem import DiskProblem


def read(directory: Path, series: str = "loss") -> tuple[tuple[Event, ...], np.ndarray]:
    """The events of a run and one series, by default the loss."""
    with closing(run.RunReader(directory)) as reader:
        update = reader.poll()
    return update.events, np.concatenate([chunk.series[series] for chunk in update.chunks] or [[]])


def events(directory: Path) -> tuple[Event, ...]:
    """The events of a run; much faster than to read its steps, too."""
    with closing(run.RunReader(directory, steps=False)) as reader:
        return reader.poll().events


def steps(directory: Path) -> int:
    """How many steps of a run are recorded; much faster than to read them."""
    with closing(run.RunReader(directory)) as reader:
        new = reader.new_steps()
    return new.stop if new else 0


def last(directory: Path) -> RunEnded:
    """The event that ended a run."""
    event = events(directory)[-1]
    assert isinstance(event, RunEnded), event
    return event


def status(directory: Path) -> run.Status:
    """The status of a run."""
    with closing(run.RunReader(directory)) as reader:
        return reader.info().status


def waiting(directory: Path) -> DiskProblem | None:
    """What the engine of a run waits for."""
    with closing(run.RunReader(directory)) as reader:
        return reader.info().waiting
