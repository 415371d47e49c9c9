"""Writes a run for recorders in another process, without waiting for the disk."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from accel_engine import clock
from accel_engine.devices.device_types import Sample
from accel_engine.errors import DatabaseError, RunError
from accel_engine.events import EpochEnded, Event, RunEnded, RunStarted, Warned
from accel_engine.process.engine_process import package_versions
from accel_engine.run import media
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.run.directory.disk_problem import disk_problem, may_pass
from accel_engine.run.engine.commands import Command, answered
from accel_engine.run.writing.writer import RunWriter
from accel_engine.scripts.patient_writer import PatientWriter


class SupervisedRun(ABC):
    """A run that recorders in a script send. Thread-safe.

    A thread writes, so that nothing waits for the disk; see :class:`PatientWriter`.

    Args:
        directory: The run's directory.
        report: Called with each problem, for the log.

    Attributes:
        directory: The run's directory.
        step: Steps taken in the run.
        epochs: Epochs ended in the run.

    Raises:
        RunError: There is no run, or it cannot be read.
    """

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        self.directory = directory
        self.step = self.epochs = 0
        self._report = report
        self._writer = RunWriter(directory)
        self._queue = PatientWriter(report, self._show_waiting, partial(may_pass, directory=directory))
        self._began = clock.now()
        self._answered: set[int] = set()

    def start(self, values: Mapping[str, Any], pid: int) -> None:
        """Lock the run and write its start, from its present step on.

        Args:
            values: The known fields of a plan.
            pid: The script's process; the supervisor's where that is its parent.
        """
        started = RunStarted(
            time=self._began,
            run=self.directory.name,
            name=str(values["name"]),
            plan=dict(values),
            first_step=self.step,
            pid=pid,
            host=socket.gethostname(),
            versions=package_versions(),
        )
        self._queue.put(lambda: self._writer.begin(started))

    @abstractmethod
    def end_part(self, ended: RunEnded, unanswered: Iterable[Command] = ()) -> None:
        """End what a recorder has begun.

        Args:
            ended: Its end; ``seconds`` are its own.
            unanswered: Commands that the recorder got.
        """

    def write_event(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, EpochEnded):
            self.epochs = event.epoch
        self._queue.put(lambda: self._writer.write_event(event))

    def write_chunk(
        self, first_step: int, started: float, ended: float, series: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Add consecutive steps; see :meth:`RunWriter.write_chunk`."""
        size = sum(values.nbytes for values in series.values())
        self._queue.put(lambda: self._writer.write_chunk(first_step, started, ended, series), size)
        self.step = first_step + len(next(iter(series.values())))

    def write_samples(self, samples: Sequence[Sample]) -> None:
        """Add device samples; while the disk is full, the writer holds them in memory."""
        try:
            self._writer.write_samples(samples)
        except RunError:
            return

    def write_media(self, step: int, time: float, name: str, item: "media.MediaItem") -> None:
        """Add an image, a text or a histogram."""
        size = len(media.pack_media(item)[2])
        self._queue.put(lambda: self._writer.write_media(step, time, name, item), size, self.warn)

    def write_diagnostics(self, item: DiagnosticsItem) -> None:
        """Write diagnostics with the number of the last step."""
        step = self.step
        self._queue.put(lambda: self._writer.write_diagnostics(item, step))

    def warn(self, message: str) -> None:
        """Add a warning, also to the log."""
        self._report(message)
        self.write_event(Warned(time=clock.now(), message=message))

    def heartbeat(self) -> None:
        """Write the heartbeat; recording ends if another process has taken over the run, or its directory is gone."""
        try:
            self._writer.heartbeat()
        except DatabaseError:
            pass  # it is written the next time
        except RunError as error:
            self._queue.fail(error)

    def commands(self) -> list[Command]:
        """Return the commands without an answer; none while they cannot be read."""
        try:
            return [command for command in self._writer.commands() if command.id not in self._answered]
        except RunError:
            return []

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        self._answered.add(command.id)
        self._queue.put(lambda: self._writer.answer(command, obeyed=obeyed, answer=answer))

    def answer_for_recorder(self, command: Command, answer: str, *, obeyed: bool) -> None:
        """Answer a command that no recorder answers, and record the answer."""
        self.answer(command, obeyed=obeyed, answer=answer)
        self.write_event(answered(command, clock.now(), self.step, answer, obeyed=obeyed))

    def flush(self) -> None:
        """Wait until all is written, or cannot be."""
        self._queue.flush()

    def close(self) -> None:
        """Close the run, which cannot be written any more."""
        with suppress(RunError):
            self._writer.close()

    @property
    def failure(self) -> str:
        """Why nothing is written any more; empty if it is."""
        return self._queue.failure

    def _finish(self, ended: RunEnded) -> None:
        """Write the run's end; waits until all is written, or cannot be."""
        self._queue.put(lambda: self._writer.end(ended))
        self._queue.finish()

    def _show_waiting(self, error: DatabaseError | None) -> None:
        self._writer.show_problem(disk_problem(error, self.directory) if error else None)
