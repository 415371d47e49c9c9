"""What writes a recorded run, in a thread of its own: training does not wait for a disk."""

import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.devices import Sampler
from accel_engine.devices.reading import Sample
from accel_engine.events import CommandAnswered, Event, RunEnded, RunStarted
from accel_engine.run.commands import Command
from accel_engine.run.ending import end
from accel_engine.run.status import HEARTBEAT_SECONDS
from accel_engine.run.writer import RunWriter
from accel_engine.training.control import Mailbox

POLL_SECONDS = 0.25
"""How often it looks for commands."""

PATIENCE_SECONDS = 10.0
"""How long a script that is done waits until everything is written."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps that were taken.

    Attributes:
        started: Seconds since the Unix epoch.
        ended: Likewise.
        series: What was measured at each, by name.
    """

    started: float
    ended: float
    series: Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a command.

    Attributes:
        command: What was asked.
        said: The answer, as the run's events tell it.
    """

    command: Command
    said: CommandAnswered


Said = Steps | Event | Answer | tuple[Sample, ...] | None
"""What is told to it; readings are of one time, and nothing stands for training that was left without a word."""


class Scribe:
    """Writes one run until it has ended, reads the devices, and hands on what somebody asks of the run.

    Ctrl-C may interrupt who tells it something anywhere, but not its thread: what must not be left half done is done
    there, from the run's beginning to its end.

    Args:
        directory: The run's.
        started: Its first word.
        mailbox: Where commands are put.
        left: Gives the run's end when training was left without a word; asked once a second, in this thread, whether
            that is so, and at last told that it is.

    Attributes:
        steps: Of the run that are written.
    """

    def __init__(
        self, directory: Path, started: RunStarted, mailbox: Mailbox, left: Callable[[bool], RunEnded | None]
    ) -> None:
        self._directory = directory
        self._started = started
        self.steps = started.first_step
        self._mailbox = mailbox
        self._left: Callable[[bool], RunEnded | None] | None = left
        self._last_command = 0
        self._writing = False
        self._told: queue.SimpleQueue[Said] = queue.SimpleQueue()
        self._begun: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()
        # What was read goes the same way: where the run can be written no more, only one thread meets that.
        self._sampler = Sampler(self.tell, engine=os.getpid())

    def begin(self) -> None:
        """Begin to write.

        Raises:
            RunError: The run cannot be written, or another process has it.
        """
        thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._writing = True
        thread.start()
        if error := self._begun.get():
            raise error

    def tell(self, said: Said) -> None:
        """Have something written; after a :class:`RunEnded`, and where writing has failed, nothing more is."""
        if self._writing:
            self._told.put(said)

    def finish(self, ended: RunEnded | None) -> None:
        """End the run, unless it has ended, and wait until that is written; ``None`` if training was just left."""
        self.tell(ended)
        if self._writing:
            with suppress(queue.Empty):
                self._done.get(timeout=PATIENCE_SECONDS)

    def _run(self) -> None:
        begun = False
        try:
            with closing(RunWriter(self._directory)) as writer:
                writer.begin(self._started)
                begun = True
                self._begun.put(None)
                self._sampler.start()
                self._write(writer)
        except Exception as error:  # noqa: BLE001 (whatever it is, training goes on)
            if not begun:
                self._begun.put(error)
                return
            self._mailbox.post(Command(0, time.time(), "", "resume"))  # nobody could end a pause any more
            warnings.warn(f"the run is no longer recorded, training goes on: {error}", RuntimeWarning, stacklevel=2)
        finally:
            self._sampler.stop()
            self._left = None  # what was trained is not kept by a thread that is about to end
            self._writing = False
            self._done.put(None)

    def _write(self, writer: RunWriter) -> None:
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
                said = self._told.get(timeout=max(0.0, look - time.monotonic()))
            except queue.Empty:
                continue
            match said:
                case Steps():
                    writer.chunk(self.steps, said.started, said.ended, said.series)
                    self.steps += len(next(iter(said.series.values())))
                case Answer():
                    writer.answer(said.command, obeyed=said.said.obeyed, answer=said.said.answer)
                    writer.event(said.said)
                case RunEnded():
                    self._sampler.stop()
                    end(writer, replace(said, steps=self.steps))
                    return
                case Event():
                    writer.event(said)
                case None:
                    self._look(sure=True)
                case samples:
                    writer.samples(samples)

    def _look(self, *, sure: bool) -> None:
        if self._left and (ended := self._left(sure)):
            self.tell(ended)

    def _pass_on(self, writer: RunWriter) -> None:
        for command in writer.commands():
            if command.id > self._last_command:
                self._last_command = command.id
                self._mailbox.post(command)
