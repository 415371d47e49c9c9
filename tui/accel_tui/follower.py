"""Follows what another process writes, in a thread, so that no screen waits for a disk."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from accel_engine.text import printable

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class NewState:
    """There is a new state, to be taken with :meth:`Follower.latest`."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The state cannot be read, at least now."""

    problem: str


class Running(Protocol):
    """Something that the state is followed for, such as an app."""

    @property
    def is_running(self) -> bool:
        """Whether it is still there."""


class Follower(Generic[State]):
    """Reads a state again and again, and tells of it by values. Subclasses read it, in :meth:`run`.

    At most one :class:`NewState` is pending: the next comes only after :meth:`latest`.

    Args:
        state: The state before anything is read.
    """

    def __init__(self, state: State) -> None:
        self.told: deque[object] = deque()
        """The news that were not awaited yet, oldest first."""
        self._latest = state
        self._taken = True
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._wakeup = threading.Event()
        self._arrived: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._app: Running | None = None

    def run(self) -> None:
        """Read the state, :meth:`put` and :meth:`tell` what is new, and :meth:`wait`, while :attr:`is_wanted`."""
        raise NotImplementedError

    def start(self, app: Running) -> None:
        """Follow in a thread, until :meth:`stop` or the end of an app; the app's pool of threads is too small."""
        self._app, self._loop, self._arrived = app, asyncio.get_running_loop(), asyncio.Event()
        threading.Thread(target=copy_context().run, args=(self._run,), daemon=True).start()

    def stop(self) -> None:
        """End the thread soon; callable from any thread."""
        self._stop.set()
        self._wakeup.set()

    async def news(self, app: Running) -> AsyncIterator[object]:
        """Yield the news; starts the thread if necessary, and stops it when this is no longer awaited.

        Args:
            app: As :meth:`start` takes it.
        """
        if self._arrived is None:
            self.start(app)
        try:
            while self._arrived and await self._arrived.wait():
                self._arrived.clear()
                while self.told:
                    yield self.told.popleft()
        finally:
            self.stop()

    def latest(self) -> State:
        """The latest state; callable from any thread."""
        with self._lock:
            self._taken = True
            return self._latest

    @property
    def is_wanted(self) -> bool:
        """Whether to continue: a screen that is closed while being composed stops nothing."""
        return not self._stop.is_set() and (self._app is None or self._app.is_running)

    def put(self, state: State) -> None:
        """Tell that there is a new state."""
        with self._lock:
            self._latest = state
            is_wanted, self._taken = self._taken, False
        if is_wanted:
            self.tell(NewState())

    def tell(self, news: object) -> None:
        """Tell anything, such as :class:`Unreadable`."""
        self.told.append(news)
        if self._loop and self._arrived:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._arrived.set)

    def wait(self, seconds: float) -> None:
        """Wait for the next time to read, or for whatever sets the event that wakes it."""
        self._wakeup.wait(seconds)
        self._wakeup.clear()

    def _run(self) -> None:
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 (the screen would wait for ever)
            self.tell(Unreadable(printable(f"cannot be read: {type(error).__name__}: {error}")))
