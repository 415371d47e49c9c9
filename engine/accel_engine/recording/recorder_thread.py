"""Writes a recorded run in a separate thread, so that training does not wait for the disk."""

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np

from accel_engine import clock
from accel_engine.errors import DatabaseError, RunError, format_error
from accel_engine.events import EpochEnded, Event, Outcome, RunEnded, RunStarted, Warned
from accel_engine.recording.destination import Destination, RecordedRun
from accel_engine.recording.error_guard import warn
from accel_engine.recording.own_run import OwnSampler
from accel_engine.recording.write_queue import (
    AnyValues,
    PendingAnswer,
    PendingMedia,
    PendingSteps,
    QueueItem,
    WriteQueue,
)
from accel_engine.run.engine.commands import Command, end
from accel_engine.run.engine.status import HEARTBEAT_SECONDS
from accel_engine.training.commands.command_mailbox import CommandMailbox

POLL_SECONDS = 0.25
"""Interval of reading commands."""

BEGIN_SECONDS = 3.0
"""How long ``fit`` waits at its start for the run to be created, which usually takes about 50 ms."""

END_SECONDS = 5.0
"""How long ``fit`` waits at its end for everything to be written."""

EXIT_SECONDS = 10.0
"""How long a script waits for that at its exit."""

DROPPED_CHUNK_STEPS = 1 << 16
"""Maximum steps of a chunk that stands for dropped steps."""


class RecorderThread:
    """Writes one run until it ends, samples the devices, and forwards commands.

    Ctrl-C may interrupt the callers anywhere, but not this thread, so everything that must not be interrupted is done
    here.

    Args:
        destination: Where to write.
        started: The run's first event, without the run's id.
        mailbox: Receives the commands.
        left: Returns the run's end if ``fit`` was left by an exception; called in this thread once a second, and with
            ``True`` when ``fit`` is certain to have been left.
        collect: Returns more to write; called in this thread after commands were read, and before the end.

    Attributes:
        steps: Number of written steps of the run.
        writing: Whether items are still written.
        polls: How often commands were read.
    """

    def __init__(
        self,
        destination: Destination,
        started: RunStarted,
        mailbox: CommandMailbox,
        left: Callable[[bool], RunEnded | None],
        collect: Callable[[], Iterable[QueueItem]] = tuple,
    ) -> None:
        self._destination = destination
        self._started = started
        self.steps = started.first_step
        self.writing = False
        self.polls = 0
        self._sampler: OwnSampler | None = None
        self._mailbox = mailbox
        self._left: Callable[[bool], RunEnded | None] | None = left
        self._collect = collect
        self._epoch: EpochEnded | None = None
        self._last_step_time = 0.0
        self._first_series = "loss"
        self._failed_series: set[str] = set()
        self._queue = WriteQueue()
        self._warned_of_drops = False
        self._reported_drops = 0
        self._failure: Exception | None = None
        self._started_signal: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()

    def begin(self) -> None:
        """Start the thread, and wait up to :data:`BEGIN_SECONDS` for the run to be created.

        Raises:
            Exception: The run cannot be written, or another process writes it.
        """
        thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self.writing = True
        _UNFINISHED.add(self)
        try:
            thread.start()
        except RuntimeError:  # too many threads
            self.writing = False
            _UNFINISHED.discard(self)
            raise
        try:
            self._started_signal.get(timeout=BEGIN_SECONDS)
        except queue.Empty:
            warn(f"could not start the run within {BEGIN_SECONDS:g} s, training continues; the disk may be busy")
        self.check()

    def put(self, item: QueueItem) -> None:
        """Queue an item for writing; ignored after the run's end or a failed write."""
        if not self.writing:
            return
        waiting = self._queue
        fits = waiting.ends_run(item) or waiting.has_room(item)
        if fits and waiting.dropped > self._reported_drops:
            self._reported_drops = waiting.dropped
            dropped = f"{waiting.dropped_steps:,} steps and {waiting.dropped_items:,} other records were dropped"
            waiting.put(Warned(time=clock.now(), message=f"{dropped}: the disk was slower than training"))
        if fits:
            waiting.put(item)
            return
        waiting.drop(item)
        if not self._warned_of_drops:
            self._warned_of_drops = True
            warn("the disk is too slow: training continues, but some of it is missing in the run")

    def check(self) -> None:
        """Raise the error of a failed write.

        Raises:
            Exception: Writing has failed; raised once.
        """
        failure, self._failure = self._failure, None
        if failure:
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

    def _run(self) -> None:
        try:
            with closing(self._destination.open(self._started)) as run:
                self._started_signal.put(None)
                if self._destination.samples_devices:
                    # Samples are queued, too, so that only this thread meets write errors.
                    self._sampler = OwnSampler(self.put, engine=os.getpid())
                    self._sampler.start()
                try:
                    self._write(run)
                except Exception as error:
                    self._stop_sampler()
                    with suppress(Exception):
                        self._end_early(run, error)
                    raise
                finally:
                    self._stop_sampler()
        except Exception as error:  # noqa: BLE001 (whatever it is, training continues)
            self._failure = error
        except BaseException as error:  # noqa: BLE001 (a user's schedule, computed here, may exit)
            self._failure = RuntimeError(format_error(error))
        finally:
            self._left = None  # release the model
            self.writing = False
            _UNFINISHED.discard(self)
            self._mailbox.post(Command(0, clock.now(), "", "resume"))  # no other command could end a pause
            self._started_signal.put(None)
            self._done.put(None)

    def _write(self, run: RecordedRun) -> None:
        poll_due = beat_due = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= poll_due:
                poll_due = now + POLL_SECONDS
                self._mailbox.post_new(run.commands())
                self.polls += 1
                self._write_collected(run)
            if now >= beat_due:
                beat_due = now + HEARTBEAT_SECONDS
                run.heartbeat()
                self._check_left(certain=False)
            try:
                item = self._queue.get(timeout=max(0.0, poll_due - time.monotonic()))
            except queue.Empty:
                continue
            if isinstance(item, RunEnded):
                self._stop_sampler()
                end(run, replace(item, steps=self.steps))
                return
            self._write_item(run, item)

    def _write_item(self, run: RecordedRun, item: QueueItem) -> None:
        match item:
            case PendingSteps():
                self._write_steps(run, item)
            case PendingMedia(step, time_, name, media):
                try:
                    run.write_media(step, time_, name, media)
                except DatabaseError:
                    raise
                except RunError as error:  # it is too large
                    run.write_event(Warned(time=clock.now(), message=str(error)))
            case PendingAnswer(command, event):
                run.answer(command, obeyed=event.obeyed, answer=event.answer)
                run.write_event(event)
            case Event():
                if isinstance(item, EpochEnded):
                    self._epoch = item
                run.write_event(item)
            case Exception():
                raise item
            case None:
                self._write_collected(run)
                self._check_left(certain=True)
            case samples:
                run.write_samples(samples)

    def _write_collected(self, run: RecordedRun) -> None:
        for item in self._collect():
            self._write_item(run, item)

    def _stop_sampler(self) -> None:
        if self._sampler:
            self._sampler.stop()

    def _write_steps(self, run: RecordedRun, steps: PendingSteps) -> None:
        for first in range(0, steps.dropped, DROPPED_CHUNK_STEPS):  # only their number is known
            count = min(steps.dropped - first, DROPPED_CHUNK_STEPS)
            started = self._last_step_time or steps.started
            run.write_chunk(
                self.steps, started, max(started, steps.started), {self._first_series: np.full(count, np.nan)}
            )
            self.steps += count
        if not steps.count:
            return
        if steps.first_step is not None:
            self.steps = steps.first_step
        series: dict[str, AnyValues] = {}
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
                run.write_event(Warned(time=clock.now(), message=message))
        self._first_series = next(iter(series))
        run.write_chunk(self.steps, steps.started, steps.ended, series)
        self.steps += steps.count
        self._last_step_time = steps.ended

    def _end_early(self, run: RecordedRun, error: Exception) -> None:
        """Record in the run why recording stopped, if it can still be written."""
        now = clock.now()
        reason = f"recording failed, training continued: {format_error(error)}"
        ended = RunEnded(
            time=now,
            outcome=Outcome.FAILED,
            steps=self.steps,
            epochs=self._epoch.epoch if self._epoch else 0,
            seconds=now - self._started.time,
            metrics=self._epoch.metrics if self._epoch else {},
            reason=reason,
        )
        run.write_event(Warned(time=now, message=reason))
        end(run, ended)

    def _check_left(self, *, certain: bool) -> None:
        if self._left and (ended := self._left(certain)):
            self.put(ended)


_UNFINISHED: set[RecorderThread] = set()
"""Threads that have not finished writing."""


@atexit.register
def _finish_all() -> None:
    for recorder in list(_UNFINISHED):
        recorder.finish(None, EXIT_SECONDS)


def _leave_in_child() -> None:
    """A forked child has no such thread: it neither writes nor waits."""
    for recorder in list(_UNFINISHED):
        recorder.writing = False
    _UNFINISHED.clear()


os.register_at_fork(after_in_child=_leave_in_child)
