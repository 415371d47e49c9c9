"""Reads the images, texts and histograms of a run for the screen, in a thread."""

from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run import RunReader
from accel_engine.run.media import MediaItem, MediaSeries


@dataclass(frozen=True, slots=True)
class LoggedMedia:
    """What a run has.

    Attributes:
        directory: The run's directory.
        series: The images, texts and histograms by name; at least one.
    """

    directory: Path
    series: tuple[MediaSeries, ...]


@dataclass(frozen=True, slots=True)
class ChosenItem:
    """An item of a series.

    Attributes:
        series: The series.
        steps: All of its steps; empty if it has just been deleted.
        index: Index of the item's step in :attr:`steps`.
        item: The item; ``None`` if it cannot be read.
        problem: Why it cannot be read.
    """

    series: MediaSeries
    steps: tuple[int, ...] = ()
    index: int = 0
    item: MediaItem | None = None
    problem: str = ""


def read_item(directory: Path, series: MediaSeries, step: int | None) -> ChosenItem:
    """Read the item of a step, or the last one before it, or the first one; the newest one if ``step`` is ``None``."""
    steps: tuple[int, ...] = ()
    index = 0
    try:
        with closing(RunReader(directory)) as reader:
            steps = tuple(reader.media_steps(series))
            if not steps:
                return ChosenItem(series)
            index = len(steps) - 1 if step is None else max(bisect_right(steps, step) - 1, 0)
            found = reader.media(series, steps[index])
    except RunError as error:
        return ChosenItem(series, steps, index, problem=str(error))
    return ChosenItem(series, steps, index, found and found[1])
