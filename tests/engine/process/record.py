"""What a run holds, as tests of engine processes look at it."""

from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.events import Event, RunEnded


def read(directory: Path, series: str = "loss") -> tuple[tuple[Event, ...], np.ndarray]:
    """The events of a run, and the loss of each of its steps, or what else was recorded."""
    with closing(run.RunReader(directory)) as reader:
        update = reader.poll()
    return update.events, np.concatenate([chunk.series[series] for chunk in update.chunks] or [[]])


def last(directory: Path) -> RunEnded:
    """How a run ended."""
    event = read(directory)[0][-1]
    assert isinstance(event, RunEnded), event
    return event
