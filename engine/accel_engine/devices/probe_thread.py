"""A probe in a thread of its own, so that a driver that hangs or a probe that breaks costs only itself."""

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from accel_engine import clock
from accel_engine.devices.reading import Inventory, Probe, Reading, Sample, UnavailableKind

_Answer = TypeVar("_Answer")


class ProbeThread:
    """Finds a probe's devices, then reads them whenever it is asked to.

    All its methods return at once.

    Args:
        probe: Used, and closed at the end, only in this thread.
        news: Notified whenever an answer has come.
    """

    def __init__(self, probe: Probe, news: threading.Condition) -> None:
        self._probe = probe
        self._news = news
        self._inventory: Inventory | None = None
        self._asked: float | None = None
        self._answer: tuple[Sample, ...] | None = None
        self._last: tuple[Sample, ...] = ()
        self._ending = False
        # Not the condition: all the other threads that share it would wake too, every time.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"probe-{probe.kind}", daemon=True)
        self._thread.start()

    @property
    def inventory(self) -> Inventory | None:
        """What the probe found; ``None`` while it is looking."""
        return self._inventory

    @property
    def busy(self) -> bool:
        """Whether it was asked for a sample and has not answered yet."""
        return self._asked is not None

    def overdue(self) -> Inventory:
        """Say that the probe is still looking, when that was long enough."""
        return self._nothing("its driver does not answer")

    def ask(self) -> bool:
        """Ask for a sample.

        Returns:
            Whether one is on its way; not so when there is nothing to read, or when the last
            question is not answered yet.
        """
        with self._news:
            if self.busy or not self._last:
                return False
            self._asked = time.monotonic()
        self._calls.put(None)
        return True

    def take(self) -> tuple[Sample, ...]:
        """Give the newest answer once; when there is none, samples that say so."""
        with self._news:
            answer, self._answer = self._answer, None
            if answer is not None:
                return answer
            waited = 0.0 if self._asked is None else time.monotonic() - self._asked
            return self._missing(f"no answer for {waited:.1f} s")

    def end(self) -> None:
        """Let the thread end as soon as its probe lets it."""
        self._ending = True
        self._calls.put(None)

    def _run(self) -> None:
        inventory = _try(self._probe.inventory, self._nothing)
        with self._news:
            self._last = tuple(_unread(device.id) for device in inventory.devices)
            self._inventory = inventory
            self._news.notify_all()
        while self._last and self._wait_until_asked():
            answer = _try(self._probe.sample, self._missing)
            with self._news:
                self._answer = answer
                self._last = answer or self._last
                self._asked = None
                self._news.notify_all()
        self._probe.close()

    def _wait_until_asked(self) -> bool:
        self._calls.get()
        return not self._ending

    def _nothing(self, reason: str) -> Inventory:
        return Inventory((), (UnavailableKind(self._probe.kind, reason),))

    def _missing(self, reason: str) -> tuple[Sample, ...]:
        """The readings of the last answer, with a reason instead of every value."""
        now = clock.now()
        return tuple(
            Sample(now, last.device, {name: Reading.missing(reason, old.unit) for name, old in last.readings.items()})
            for last in self._last
        )


def _unread(device: str) -> Sample:
    return Sample(clock.now(), device, {"utilization": Reading.missing("was not read yet", "%")})


def _try(question: Callable[[], _Answer], otherwise: Callable[[str], _Answer]) -> _Answer:
    try:
        return question()
    except Exception as error:  # noqa: BLE001 (whatever breaks in a probe must become a reason)
        return otherwise(f"reading failed: {type(error).__name__}: {error}")
