"""What writes a recorded run, in a thread of its own: training does not wait for a disk."""

import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Mapping
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


Said = Steps | Event | Answer | tuple[Sample, ...]
"""What is told to it; readings are of one time."""


class Scribe:
    """Writes one run until it has ended, reads the devices, and hands on what somebody asks of the run.

    Args:
        directory: The run's.
        started: Its first word.
        mailbox: Where commands are put.
        left: Gives the run's end when training was left without a word; asked once a second, in this thread.

    Attributes:
        steps: Of the run that are written.

    Raises:
        RunError: The run cannot be written, or another process has it.
    """

    def __init__(
        self, directory: Path, started: RunStarted, mailbox: Mailbox, left: Callable[[], RunEnded | None]
    ) -> None:
        self._writer = RunWriter(directory)
        self._writer.begin(os.getpid(), started)
        self.steps = started.first_step
        self._mailbox = mailbox
        self._left = left
        self._last_command = 0
        self._told: queue.SimpleQueue[Said] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        # What was read goes the same way: where the run can be written no more, only one thread meets that.
        self._sampler = Sampler(self.tell, engine=os.getpid())
        self._sampler.start()
        self._thread.start()

    def tell(self, said: Said) -> None:
        """Have something written; after a :class:`RunEnded`, and where writing has failed, nothing more is."""
        if self._thread.is_alive():
            self._told.put(said)

    def finish(self, ended: RunEnded) -> None:
        """End the run and wait until that is written."""
        self.tell(ended)
        self.wait()

    def wait(self) -> None:
        """Wait until the run's end, which somebody told, is written."""
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001 (whatever it is, training goes on)
            self._writer.close()
            self._mailbox.post(Command(0, time.time(), "", "resume"))  # nobody could end a pause any more
            warnings.warn(f"the run is no longer recorded, training goes on: {error}", RuntimeWarning, stacklevel=2)
        finally:
            self._sampler.stop()

    def _write(self) -> None:
        look = beat = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= look:
                look = now + POLL_SECONDS
                self._pass_on()
            if now >= beat:
                beat = now + HEARTBEAT_SECONDS
                self._writer.heartbeat()
                if ended := self._left():
                    self.tell(ended)
            try:
                said = self._told.get(timeout=max(0.0, look - time.monotonic()))
            except queue.Empty:
                continue
            match said:
                case Steps():
                    self._writer.chunk(self.steps, said.started, said.ended, said.series)
                    self.steps += len(next(iter(said.series.values())))
                case Answer():
                    self._writer.answer(said.command, obeyed=said.said.obeyed, answer=said.said.answer)
                    self._writer.event(said.said)
                case RunEnded():
                    self._sampler.stop()
                    end(self._writer, replace(said, steps=self.steps))
                    return
                case Event():
                    self._writer.event(said)
                case samples:
                    self._writer.samples(samples)

    def _pass_on(self) -> None:
        for command in self._writer.commands():
            if command.id > self._last_command:
                self._last_command = command.id
                self._mailbox.post(command)
