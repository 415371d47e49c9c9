"""The bounded queue of items to write, so that a hanging disk neither fills memory nor blocks training."""

import queue
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.devices.device_types import Sample
from accel_engine.events import CommandAnswered, Event, RunEnded
from accel_engine.recording.running_means import Values
from accel_engine.run.engine.commands import Command
from accel_engine.run.media import MediaItem

MAX_ITEMS = 10_000
"""Maximum number of items, about an hour's: two per second are added."""

MAX_VALUES = 4_000_000
"""Maximum number of step values, 8 bytes each."""

AnyValues = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class PendingSteps:
    """Consecutive steps.

    Attributes:
        started: Seconds since the Unix epoch.
        ended: Seconds since the Unix epoch.
        count: Number of steps.
        series: Values by series name, or functions that compute them.
        dropped: Number of dropped steps right before them.
        first_step: The first of them; ``None`` for the one after the steps before.
    """

    started: float
    ended: float
    count: int
    series: Mapping[str, AnyValues | Callable[[], Values]]
    dropped: int = 0
    first_step: int | None = None


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """The answer to a command.

    Attributes:
        command: The command.
        event: The answer as an event.
    """

    command: Command
    event: CommandAnswered


@dataclass(frozen=True, slots=True)
class PendingMedia:
    """An image, a text or a histogram.

    Attributes:
        step: Steps taken when it was logged.
        time: Seconds since the Unix epoch.
        name: Its name.
        item: What to write.
    """

    step: int
    time: float
    name: str
    item: MediaItem


QueueItem = PendingSteps | PendingMedia | Event | PendingAnswer | tuple[Sample, ...] | Exception | None
"""An item to write. A tuple has the samples of one time, an exception ends the recording, and ``None`` means that
``fit`` was left by an exception."""


class WriteQueue:
    """A bounded queue without a lock that Ctrl-C could leave held.

    Only one thread at a time puts steps: the training thread or, after ``fit`` was left, the recorder thread. Any
    thread puts other items. Only the recorder thread gets items.

    Attributes:
        dropped_steps: Steps that did not fit.
        dropped_items: Other items that did not fit.
    """

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[QueueItem] = queue.SimpleQueue()
        self._put_values = 0
        self._taken_values = 0
        self._dropped_before = 0
        self.dropped_steps = 0
        self.dropped_items = 0

    @property
    def dropped(self) -> int:
        """Number of steps and items that did not fit."""
        return self.dropped_steps + self.dropped_items

    def ends_run(self, item: QueueItem) -> bool:
        """Whether an item ends the run; it always fits."""
        return item is None or isinstance(item, RunEnded | Exception)

    def has_room(self, item: QueueItem) -> bool:
        """Whether an item fits."""
        values = self._put_values - self._taken_values + _values(item)
        return self._items.qsize() < MAX_ITEMS and values <= MAX_VALUES

    def put(self, item: QueueItem) -> None:
        """Add an item; steps, and items that end the run, come with the number of steps dropped before them."""
        if isinstance(item, PendingSteps):
            item, self._dropped_before = replace(item, dropped=self._dropped_before), 0
        elif self._dropped_before and self.ends_run(item):
            self._items.put(PendingSteps(0.0, 0.0, 0, {}, self._dropped_before))
            self._dropped_before = 0
        if values := _values(item):  # do not even add 0: another thread may be adding
            self._put_values += values
        self._items.put(item)

    def drop(self, item: QueueItem) -> None:
        """Count an item that did not fit."""
        if isinstance(item, PendingSteps):
            self._dropped_before += item.count
            self.dropped_steps += item.count
        else:
            self.dropped_items += 1

    def get(self, timeout: float) -> QueueItem:
        """Remove and return the oldest item.

        Raises:
            queue.Empty: There was none within ``timeout`` seconds.
        """
        item = self._items.get(timeout=timeout)
        self._taken_values += _values(item)
        return item


def _values(item: QueueItem) -> int:
    return item.count * len(item.series) if isinstance(item, PendingSteps) else 0
