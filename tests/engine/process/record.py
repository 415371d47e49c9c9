"""Reads runs in the tests of engine processes."""

from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.events import Event, RunEnded
from accel_engine.run.disk_problem import DiskProblem


def read(directory: Path, series: str = "loss") -> tuple[tuple[Event, ...], np.ndarray]:
    """The events of a run and one series, by default the loss."""
    with closing(run.RunReader(directory)) as reader:
        update = reader.poll()
    return update.events, np.concatenate([chunk.series[series] for chunk in update.chunks] or [[]])


def last(directory: Path) -> RunEnded:
    """The event that ended a run."""
    event = read(directory)[0][-1]
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
