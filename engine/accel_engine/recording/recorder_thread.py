"""Sends a recording to the supervisor of its run in a separate thread, so that training does not wait for it."""

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine import clock
from accel_engine.errors import format_error
from accel_engine.events import CommandAnswered, EpochEnded, Event, Outcome, PhaseChanged, RunEnded, Warned
from accel_engine.recording.error_guard import warn
from accel_engine.recording.run_link import RunLink
from accel_engine.recording.running_means import Values
from accel_engine.recording.script_profile import ScriptProfiler
from accel_engine.run.engine.commands import Command
from accel_engine.run.media import MediaItem
from accel_engine.training.commands.command_mailbox import CommandMailbox

POLL_SECONDS = 0.25
"""Interval of reading commands."""

OF_A_LOOP = "Steps are those that the script logs, and shares are of all that it computed, validation too."
"""What is to be said of the profile of a training loop, which does not say when it validates."""

CHECK_SECONDS = 1.0
"""Interval of looking whether ``fit`` was left."""

END_SECONDS = 5.0
"""How long ``fit`` waits at its end for everything to be written."""

EXIT_SECONDS = 10.0
"""How long a script waits for that at its exit."""


@dataclass(frozen=True, slots=True)
class PendingSteps:
    """Consecutive steps."""

    started: float
    """Seconds since the Unix epoch."""
    ended: float
    """Seconds since the Unix epoch."""
    count: int
    series: Mapping[str, npt.NDArray[np.floating[Any]] | Callable[[], Values]]
    """Values by series name, or functions that compute them."""
    first_step: int | None = None
    """The first of them; ``None`` for the one after the steps before."""


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """The answer to a command."""

    command: Command
    event: CommandAnswered
    """The answer as an event."""


@dataclass(frozen=True, slots=True)
class PendingMedia:
    """An image, a text or a histogram."""

    step: int
    """Steps taken when it was logged."""
    time: float
    """Seconds since the Unix epoch."""
    name: str
    item: MediaItem
    """The item to write."""


QueueItem = PendingSteps | PendingMedia | Event | PendingAnswer | Exception | None
"""An item to send. An exception ends the recording, and ``None`` means that ``fit`` was left by an exception."""


class RecorderThread:
    """Sends one recording until it ends, and forwards commands.

    Ctrl-C may interrupt the callers anywhere, but not this thread, so everything that must not be interrupted is done
    here. Items wait in a queue without a lock that Ctrl-C could leave held; the link takes them at once, or fails.

    Args:
        link: Where to send.
        mailbox: Receives the commands.
        left: Returns the run's end if ``fit`` was left by an exception; called in this thread once a second, and with
            ``True`` when ``fit`` is certain to have been left.
        collect: Returns more to send; called in this thread after commands were read, and before the end.
        taken: Returns the number of steps that the run has taken; those that were sent by default.

    Attributes:
        steps: Number of sent steps of the run.
        writing: Whether items are still sent.
    """

    def __init__(
        self,
        link: RunLink,
        mailbox: CommandMailbox,
        left: Callable[[bool], RunEnded | None],
        collect: Callable[[], Iterable[QueueItem]] = tuple,
        taken: Callable[[], int] | None = None,
    ) -> None:
        self._link = link
        self._began = clock.now()
        self.steps = link.step
        self.writing = False
        self._mailbox = mailbox
        self._left: Callable[[bool], RunEnded | None] | None = left
        self._collect = collect
        self._epoch: EpochEnded | None = None
        self._failed_series: set[str] = set()
        self._profiler = ScriptProfiler(link, taken or (lambda: self.steps), () if taken else (OF_A_LOOP,))
        self._queue: queue.SimpleQueue[QueueItem] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()

    def begin(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: There are too many threads.
        """
        thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self.writing = True
        _UNFINISHED.add(self)
        try:
            thread.start()
        except RuntimeError:
            self.writing = False
            _UNFINISHED.discard(self)
            self._link.close()
            raise

    def put(self, item: QueueItem) -> None:
        """Queue an item; ignored after the run's end or a failure."""
        if self.writing:
            self._queue.put(item)
            if isinstance(item, PhaseChanged):
                self._profiler.enter(item.phase)

    def check(self) -> None:
        """Raise the error that has ended the recording.

        Raises:
            Exception: The recording has failed; raised once.
        """
        failure, self._failure = self._failure, None
        if failure:
            _UNFINISHED.discard(self)
            raise failure

    def finish(self, ended: RunEnded | None, seconds: float | None = None) -> bool:
        """End the run, unless it has ended, and wait until everything is written.

        Args:
            ended: The run's last event; ``None`` if ``fit`` was left by an exception.
            seconds: How long to wait; :data:`END_SECONDS` by default.

        Returns:
            Whether everything is written.
        """
        self.put(ended)
        if self.writing:
            with suppress(queue.Empty):
                self._done.get(timeout=END_SECONDS if seconds is None else seconds)
        return not self.writing

    def leave_in_child(self) -> None:
        """Send nothing in a forked child, which has no such thread, and close its copy of the parent's connection."""
        self.writing = False
        self._link.close()

    def _run(self) -> None:
        try:
            with closing(self._link):
                try:
                    self._send_all()
                except Exception as error:
                    with suppress(Exception):
                        self._end_early(error)
                    raise
        except Exception as error:  # noqa: BLE001 (whatever it is, training continues)
            self._failure = error
        except BaseException as error:  # noqa: BLE001 (a user's schedule, computed here, may exit)
            self._failure = RuntimeError(format_error(error))
        finally:
            self._left = None  # release the model
            self.writing = False
            if not self._failure:
                _UNFINISHED.discard(self)
            self._mailbox.post(Command(0, clock.now(), "", "resume"))  # no other command could end a pause
            self._done.put(None)

    def _send_all(self) -> None:
        poll_due = check_due = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= poll_due:
                poll_due = now + POLL_SECONDS
                self._mailbox.post_new(self._profiler.take(self._link.commands()))
                self._profiler.update()
                self._send_collected()
            if now >= check_due:
                check_due = now + CHECK_SECONDS
                self._check_left(certain=False)
            try:
                item = self._queue.get(timeout=max(0.0, poll_due - time.monotonic()))
            except queue.Empty:
                continue
            if isinstance(item, RunEnded):
                self._profiler.end("The training ended")
                self._link.end(replace(item, steps=self.steps))
                return
            self._send(item)

    def _send(self, item: QueueItem) -> None:
        link = self._link
        match item:
            case PendingSteps():
                self._send_steps(item)
            case PendingMedia(step, time_, name, media):
                try:
                    link.write_media(step, time_, name, media)
                except ValueError as error:  # it is too large
                    link.write_event(Warned(time=clock.now(), message=f"{name} is not recorded: {error}"))
            case PendingAnswer(command, event):
                link.answer(command, obeyed=event.obeyed, answer=event.answer)
                link.write_event(event)
            case Event():
                if isinstance(item, EpochEnded):
                    self._epoch = item
                link.write_event(item)
            case Exception():
                raise item
            case None:
                self._send_collected()
                self._check_left(certain=True)

    def _send_collected(self) -> None:
        for item in self._collect():
            self._send(item)

    def _send_steps(self, steps: PendingSteps) -> None:
        if steps.first_step is not None:
            self.steps = steps.first_step
        series: dict[str, npt.ArrayLike] = {}
        for name, values in steps.series.items():
            if callable(values) and name in self._failed_series:
                continue
            try:
                series[name] = values() if callable(values) else values
            except Exception as error:  # noqa: BLE001 (a user's schedule may raise anything)
                self._failed_series.add(name)
                message = (
                    f"{name} is missing from step {self.steps} on, as it cannot be computed: {format_error(error)}"
                )
                self._link.write_event(Warned(time=clock.now(), message=message))
        self._link.write_chunk(self.steps, steps.started, steps.ended, series)
        self.steps += steps.count

    def _end_early(self, error: Exception) -> None:
        """Record in the run why recording stopped, if the supervisor can still be reached."""
        self._profiler.end("The recording ended")
        now = clock.now()
        reason = f"recording failed, training continued: {format_error(error)}"
        ended = RunEnded(
            time=now,
            outcome=Outcome.FAILED,
            steps=self.steps,
            epochs=self._epoch.epoch if self._epoch else 0,
            seconds=now - self._began,
            metrics=self._epoch.metrics if self._epoch else {},
            reason=reason,
        )
        self._link.write_event(Warned(time=now, message=reason))
        self._link.end(ended)

    def _check_left(self, *, certain: bool) -> None:
        if self._left and (ended := self._left(certain)):
            self.put(ended)


_UNFINISHED: set[RecorderThread] = set()
"""Threads that have not finished, or have failed without being checked."""


@atexit.register
def _finish_all() -> None:
    for recorder in list(_UNFINISHED):
        recorder.finish(None, EXIT_SECONDS)
        try:
            recorder.check()
        except Exception as error:  # noqa: BLE001 (whatever it is, the script exits as without a recorder)
            warn(f"recording has ended before the script: {format_error(error)}")


def _leave_in_child() -> None:
    for recorder in list(_UNFINISHED):
        recorder.leave_in_child()
    _UNFINISHED.clear()


os.register_at_fork(after_in_child=_leave_in_child)
