"""Writes the run of a script: its parts, one after the other, and its end."""

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from accel_engine import clock
from accel_engine.devices.device_types import Sample
from accel_engine.errors import DatabaseError, RunError
from accel_engine.events import (
    EpochEnded,
    Event,
    Outcome,
    PartEnded,
    PartStarted,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Warned,
)
from accel_engine.process.engine_process import package_versions
from accel_engine.run import media
from accel_engine.run.directory.disk_problem import disk_problem
from accel_engine.run.engine.commands import Command, end
from accel_engine.run.reading.reader import RunReader
from accel_engine.run.writing.writer import RunWriter
from accel_engine.scripts.patient_writer import PatientWriter


class ScriptRun:
    """The run of a script. Thread-safe.

    A thread writes, so that nothing waits for the disk; see :class:`PatientWriter`.

    Args:
        directory: The run's directory.
        report: Called with each problem, for the log.

    Raises:
        RunError: There is no run, or it cannot be read.
    """

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        self.directory = directory
        self._report = report
        self._writer = RunWriter(directory)
        self._queue = PatientWriter(report, self._show_waiting)
        with closing(RunReader(directory)) as reader:
            self._values = reader.info().plan_values
        self._lock = threading.RLock()
        self._began = clock.now()
        self._answered: set[int] = set()
        self._step = self._epoch = self._parts = 0
        self.part: PartStarted | None = None
        """The part that is being recorded."""
        self._last: PartEnded | None = None

    def begin(self) -> None:
        """Lock the run and write its start."""
        started = RunStarted(
            time=self._began,
            run=self.directory.name,
            name=str(self._values["name"]),
            plan=self._values,
            first_step=0,
            pid=os.getpid(),
            host=socket.gethostname(),
            versions=package_versions(),
        )
        self._queue.put(lambda: self._writer.begin(started))
        self._enter_phase()

    def begin_part(self, values: Mapping[str, Any], *, parsed: bool = False) -> PartStarted:
        """Begin a part.

        Args:
            values: The plan fields that the script's part knows: ``name``, ``model``, ``strategy``, ``epochs``.
            parsed: Whether its values come from lines of the output.

        Raises:
            RunError: Another part is being recorded.
        """
        with self._lock:
            if self.part:
                raise RunError(
                    f"part {self.part.part} ({self.part.name}) is being recorded: parts are one after another"
                )
            self._parts += 1
            name = str(values.get("name") or values.get("model") or f"part {self._parts}")
            self.part = PartStarted(
                time=clock.now(), part=self._parts, name=name, step=self._step, epoch=self._epoch, parsed=parsed
            )
            config = {**self._values.get("config", {}), **values.get("config", {})}
            if self._parts == 1:
                self._values |= {key: value for key, value in values.items() if key not in ("name", "data")}
            if self._parts == 1 or config:
                self._values |= {"config": config} if config else {}
                known = dict(self._values)
                self._queue.put(lambda: self._writer.write_values(known))
            self.write_event(self.part)
            return self.part

    def end_part(self, ended: RunEnded) -> None:
        """End the part.

        Args:
            ended: The part's end; its ``seconds`` are those of the part.
        """
        with self._lock:
            if not self.part:
                return
            self._last = PartEnded(
                time=ended.time,
                part=self.part.part,
                name=self.part.name,
                outcome=ended.outcome,
                step=self._step,
                epoch=self._epoch,
                seconds=ended.seconds,
                steps_per_second=ended.steps_per_second,
                metrics=ended.metrics,
                reason=ended.reason,
            )
            self.part = None
            self.write_event(self._last)
            self._enter_phase()

    def write_event(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, EpochEnded):
            self._epoch = event.epoch
        self._queue.put(lambda: self._writer.write_event(event))

    def write_chunk(
        self, first_step: int, started: float, ended: float, series: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Add consecutive steps; see :meth:`RunWriter.write_chunk`."""
        size = sum(values.nbytes for values in series.values())
        self._queue.put(lambda: self._writer.write_chunk(first_step, started, ended, series), size)
        self._step = first_step + len(next(iter(series.values())))

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

    def end(self, outcome: Outcome, reason: str, hint: str = "") -> None:
        """End the run, and a part that the script has left; waits until all is written, or cannot be."""
        now = clock.now()
        ended = RunEnded(
            time=now,
            outcome=outcome,
            steps=self._step,
            epochs=self._epoch,
            seconds=now - self._began,
            reason=reason,
            hint=hint,
        )
        if self.part:
            self.end_part(replace(ended, seconds=now - self.part.time))
        if self._last:
            ended = replace(ended, metrics=self._last.metrics, steps_per_second=self._last.steps_per_second)
        self._queue.put(lambda: end(self._writer, ended))
        self._queue.finish()

    def flush(self) -> None:
        """Wait until all is written, or cannot be."""
        self._queue.flush()

    @property
    def step(self) -> int:
        """Steps taken in the run."""
        return self._step

    @property
    def stopped(self) -> str:
        """Why the last part was stopped; empty if it was not."""
        return self._last.reason if self._last and self._last.outcome is Outcome.STOPPED else ""

    def _show_waiting(self, error: DatabaseError | None) -> None:
        self._writer.show_problem(disk_problem(error, self.directory) if error else None)

    def _enter_phase(self) -> None:
        self.write_event(PhaseChanged(time=clock.now(), phase=Phase.SCRIPT))
