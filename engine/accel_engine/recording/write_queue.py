"""What waits to be written: a disk that hangs takes no memory without end, and holds nobody up."""

import queue
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from accel_engine.devices.reading import Sample
from accel_engine.events import CommandAnswered, Event, RunEnded
from accel_engine.recording.running_means import Values
from accel_engine.run.commands import Command

MOST_ITEMS = 10_000
"""How many items wait at most: those of an hour, as training looks twice a second."""

MOST_VALUES = 4_000_000
"""How many values of steps wait at most; 8 bytes each."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps that were taken.

    Attributes:
        started: Seconds since the Unix epoch.
        ended: Likewise.
        count: How many they are.
        series: What was measured at each, by name, or what computes that.
        lost: Steps right before them that there was no room for.
    """

    started: float
    ended: float
    count: int
    series: Mapping[str, Values | Callable[[], Values]]
    lost: int = 0


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What became of a command.

    Attributes:
        command: What was asked.
        said: The answer, as the run's events tell it.
    """

    command: Command
    said: CommandAnswered


Item = Steps | Event | CommandReply | tuple[Sample, ...] | Exception | None
"""What is to be written. Samples are of one time, an exception is what ended the recording, and ``None`` stands for
training that ended without a word."""


class WriteQueue:
    """A queue with bounds, without a lock that stays taken where Ctrl-C interrupts it.

    Steps are put in by one thread at a time: the one that trains or, when training was left, the one that records.
    Other items are put in by any thread. All are taken out by the recording thread alone.

    Attributes:
        lost_steps: Steps that there was no room for.
        lost_items: What there was no room for beside steps.
    """

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._put_values = 0
        self._taken_values = 0
        self._gap = 0
        self.lost_steps = 0
        self.lost_items = 0

    @property
    def lost(self) -> int:
        """All that there was no room for."""
        return self.lost_steps + self.lost_items

    def ends(self, item: Item) -> bool:
        """Whether an item ends the run; there is always room for that."""
        return item is None or isinstance(item, RunEnded | Exception)

    def has_room(self, item: Item) -> bool:
        """Whether an item may be put in."""
        values = self._put_values - self._taken_values + _values(item)
        return self._items.qsize() < MOST_ITEMS and values <= MOST_VALUES

    def put(self, item: Item) -> None:
        """Add an item; before one that ends the run, or that has steps, it is noted which steps were lost."""
        if isinstance(item, Steps):
            item, self._gap = replace(item, lost=self._gap), 0
        elif self._gap and self.ends(item):
            self._items.put(Steps(0.0, 0.0, 0, {}, self._gap))
            self._gap = 0
        if values := _values(item):  # else not even to add 0: another thread may be adding
            self._put_values += values
        self._items.put(item)

    def lose(self, item: Item) -> None:
        """Count an item that there was no room for."""
        if isinstance(item, Steps):
            self._gap += item.count
            self.lost_steps += item.count
        else:
            self.lost_items += 1

    def get(self, timeout: float) -> Item:
        """Take the oldest item.

        Raises:
            queue.Empty: None came in so many seconds.
        """
        item = self._items.get(timeout=timeout)
        self._taken_values += _values(item)
        return item


def _values(item: Item) -> int:
    return item.count * len(item.series) if isinstance(item, Steps) else 0
