"""What writes a recorded run, in a thread of its own: training does not wait for a disk."""

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from accel_engine import clock
from accel_engine.devices import Sampler
from accel_engine.events import EpochEnded, Event, Outcome, RunEnded, RunStarted, Warned
from accel_engine.recording.error_guard import describe, warn
from accel_engine.recording.running_means import Values
from accel_engine.recording.write_queue import CommandReply, Item, Steps, WriteQueue
from accel_engine.run.commands import Command
from accel_engine.run.ending import end
from accel_engine.run.status import HEARTBEAT_SECONDS
from accel_engine.run.writer import RunWriter
from accel_engine.training.command_mailbox import CommandMailbox

POLL_SECONDS = 0.25
"""How often it looks for commands."""

BEGIN_SECONDS = 3.0
"""How long ``fit`` waits for the run to be there; it is some 50 ms where the disk is well."""

END_SECONDS = 5.0
"""How long ``fit`` waits at its end until everything is written."""

EXIT_SECONDS = 10.0
"""How long a script that is done waits for that once more."""

LOST_AT_ONCE = 1 << 16
"""Steps of a chunk of those that were lost."""


class RecorderThread:
    """Writes one run until it has ended, reads the devices, and hands on what somebody asks of the run.

    Ctrl-C may interrupt who tells it something anywhere, but not its thread: what must not be left half done is done
    there, from the run's beginning to its end.

    Args:
        make: Gives the run's directory, and makes it where there is none.
        started: Its first word, but for the run's id.
        mailbox: Where commands are put.
        left: Gives the run's end when training was left without a word; asked once a second, in this thread, whether
            that is so, and at last told that it is.

    Attributes:
        steps: Of the run that are written.
        writing: Whether what it is told is written.
        polls: How often it has looked for commands.
    """

    def __init__(
        self,
        make: Callable[[], Path],
        started: RunStarted,
        mailbox: CommandMailbox,
        left: Callable[[bool], RunEnded | None],
    ) -> None:
        self._make = make
        self._started = started
        self.steps = started.first_step
        self.writing = False
        self.polls = 0
        self._process = os.getpid()
        self._mailbox = mailbox
        self._left: Callable[[bool], RunEnded | None] | None = left
        self._last_command = 0
        self._epoch: EpochEnded | None = None
        self._ended = 0.0
        self._first_series = "loss"
        self._failed_series: set[str] = set()
        self._backlog = WriteQueue()
        self._warned_of_loss = False
        self._told_of_loss = 0
        self._failure: Exception | None = None
        self._begun: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()

    def begin(self) -> None:
        """Begin to write. Where the disk takes longer than :data:`BEGIN_SECONDS`, that goes on meanwhile.

        Raises:
            Exception: The run cannot be written, or another process has it.
        """
        thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self.writing = True
        try:
            thread.start()
        except RuntimeError:  # there are too many
            self.writing = False
            raise
        _UNFINISHED.add(self)
        try:
            self._begun.get(timeout=BEGIN_SECONDS)
        except queue.Empty:
            warn(f"the run could not be begun within {BEGIN_SECONDS:g} s, training goes on: is the disk busy?")
        self.check()

    def tell(self, said: Item) -> None:
        """Have something written; after what ends the run, and where writing has failed, nothing more is."""
        if not self.writing:
            return
        backlog = self._backlog
        fits = backlog.ends(said) or backlog.has_room(said)
        if fits and backlog.lost > self._told_of_loss:
            self._told_of_loss = backlog.lost
            words = f"{backlog.lost_steps:,} steps and {backlog.lost_items:,} other records were lost"
            backlog.put(Warned(time=clock.now(), message=f"{words}: the disk did not keep up with training"))
        if fits:
            backlog.put(said)
            return
        backlog.lose(said)
        if not self._warned_of_loss:
            self._warned_of_loss = True
            warn("the disk does not keep up: training goes on, and what it does now is missing in its run")

    def check(self) -> None:
        """See whether writing has failed.

        Raises:
            Exception: It has; raised once.
        """
        failure, self._failure = self._failure, None
        if failure:
            raise failure

    def finish(self, ended: RunEnded | None, seconds: float | None = None) -> bool:
        """End the run, unless it has ended, and wait until that is written.

        Args:
            ended: The run's last word; ``None`` if training was just left.
            seconds: How long to wait; :data:`END_SECONDS` when left out.

        Returns:
            Whether all is written.
        """
        self.tell(ended)
        return self.wait(END_SECONDS if seconds is None else seconds)

    def wait(self, seconds: float) -> bool:
        """Wait so long at most until the run is written to its end; tell whether it is."""
        if self.writing:
            with suppress(queue.Empty):
                self._done.get(timeout=seconds)
        return not self.writing

    def finish_at_exit(self) -> None:
        """End the run as the script ends; a child that was forked has no thread that could."""
        if os.getpid() == self._process:
            self.finish(None, EXIT_SECONDS)

    def _run(self) -> None:
        try:
            directory = self._make()
            with closing(RunWriter(directory)) as writer:
                writer.begin(replace(self._started, run=directory.name))
                self._begun.put(None)
                # What was read goes the same way: where the run can be written no more, only one thread meets that.
                sampler = Sampler(self.tell, engine=os.getpid())
                sampler.start()
                try:
                    self._write(writer, sampler)
                except Exception as error:
                    sampler.stop()
                    with suppress(Exception):
                        self._end_early(writer, error)
                    raise
                finally:
                    sampler.stop()
        except Exception as error:  # noqa: BLE001 (whatever it is, training goes on)
            self._failure = error
        except BaseException as error:  # noqa: BLE001 (a schedule of the user's own, computed here, may exit)
            self._failure = RuntimeError(describe(error))
        finally:
            self._left = None  # what was trained is not kept by a thread that is about to end
            self.writing = False
            _UNFINISHED.discard(self)
            self._mailbox.post(Command(0, clock.now(), "", "resume"))  # nobody could end a pause any more
            self._begun.put(None)
            self._done.put(None)

    def _write(self, writer: RunWriter, sampler: Sampler) -> None:
        look = beat = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= look:
                look = now + POLL_SECONDS
                self._pass_on(writer)
            if now >= beat:
                beat = now + HEARTBEAT_SECONDS
                writer.heartbeat()
                self._look(sure=False)
            try:
                said = self._backlog.get(timeout=max(0.0, look - time.monotonic()))
            except queue.Empty:
                continue
            match said:
                case Steps():
                    self._write_steps(writer, said)
                case CommandReply():
                    writer.answer(said.command, obeyed=said.said.obeyed, answer=said.said.answer)
                    writer.event(said.said)
                case RunEnded():
                    sampler.stop()
                    end(writer, replace(said, steps=self.steps))
                    return
                case Event():
                    if isinstance(said, EpochEnded):
                        self._epoch = said
                    writer.event(said)
                case Exception():
                    raise said
                case None:
                    self._look(sure=True)
                case samples:
                    writer.samples(samples)

    def _write_steps(self, writer: RunWriter, steps: Steps) -> None:
        for first in range(0, steps.lost, LOST_AT_ONCE):  # that they were taken is known, and nothing else
            count = min(steps.lost - first, LOST_AT_ONCE)
            began = self._ended or steps.started
            writer.chunk(self.steps, began, max(began, steps.started), {self._first_series: np.full(count, np.nan)})
            self.steps += count
        if not steps.count:
            return
        series: dict[str, Values] = {}
        for name, values in steps.series.items():
            if callable(values) and name in self._failed_series:
                continue
            try:
                series[name] = values() if callable(values) else values
            except Exception as error:  # noqa: BLE001 (a schedule of the user's own may raise anything)
                self._failed_series.add(name)
                words = f"{name} is missing from step {self.steps} on: it cannot be computed: {describe(error)}"
                writer.event(Warned(time=clock.now(), message=words))
        self._first_series = next(iter(series))
        writer.chunk(self.steps, steps.started, steps.ended, series)
        self.steps += steps.count
        self._ended = steps.ended

    def _end_early(self, writer: RunWriter, error: Exception) -> None:
        """Say in the run why it is recorded no further, if it can be written still."""
        now = clock.now()
        reason = f"recording failed, training went on: {describe(error)}"
        ended = RunEnded(
            time=now,
            outcome=Outcome.FAILED,
            steps=self.steps,
            epochs=self._epoch.epoch if self._epoch else 0,
            seconds=now - self._started.time,
            steps_per_second=0.0,
            metrics=self._epoch.metrics if self._epoch else {},
            reason=reason,
        )
        writer.event(Warned(time=now, message=reason))
        end(writer, ended)

    def _look(self, *, sure: bool) -> None:
        if self._left and (ended := self._left(sure)):
            self.tell(ended)

    def _pass_on(self, writer: RunWriter) -> None:
        for command in writer.commands():
            if command.id > self._last_command:
                self._last_command = command.id
                self._mailbox.post(command)
        self.polls += 1


_UNFINISHED: set[RecorderThread] = set()
"""Those that have not written a run to its end yet, whether or not anything else knows of them."""


@atexit.register
def _finish_all() -> None:
    for scribe in list(_UNFINISHED):
        scribe.finish_at_exit()
