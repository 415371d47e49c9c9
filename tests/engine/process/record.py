"""Reads runs in the tests of engine processes."""

from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.events import Event, RunEnded


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
