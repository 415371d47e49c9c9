"""Writes the run of a script: its parts, one after the other, and its end."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import Outcome, PartEnded, PartStarted, Phase, PhaseChanged, RunEnded
from accel_engine.run.engine.commands import Command
from accel_engine.run.reading.reader import read_run
from accel_engine.scripts.recorder_server import Recording
from accel_engine.scripts.supervised_run import SupervisedRun


class ScriptRun(SupervisedRun):
    """The run of a script: each recorder's is a part of it. Thread-safe.

    Args:
        directory: The run's directory.
        report: Called with each problem, for the log.

    Raises:
        RunError: There is no run, or it cannot be read.
    """

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        super().__init__(directory, report)
        self._values = read_run(directory).plan_values
        self.lock = threading.RLock()
        """Held while a part begins or ends."""
        self._parts = 0
        self.part: PartStarted | None = None
        """The part that is being recorded."""
        self.part_ended = 0.0
        """When the last part has ended."""
        self._end_parsed: Callable[[], None] | None = None
        self._last: PartEnded | None = None

    def begin(self) -> None:
        """Lock the run and write its start."""
        self.start(self._values, os.getpid())
        self._enter_phase()

    def begin_part(self, values: Mapping[str, Any], end_parsed: Callable[[], None] | None = None) -> PartStarted:
        """Begin a part; one whose values come from lines of the output ends before it.

        Args:
            values: The plan fields that the script's part knows: ``name``, ``model``, ``strategy``, ``epochs``.
            end_parsed: Ends this part, if its values come from lines of the output.

        Raises:
            RunError: Another part is being recorded.
        """
        with self.lock:
            if self._end_parsed:
                self._end_parsed()
            if self.part:
                raise RunError(
                    f"part {self.part.part} ({self.part.name}) is being recorded: parts are one after another"
                )
            self._parts += 1
            name = str(values.get("name") or values.get("model") or f"part {self._parts}")
            self.part = PartStarted(
                time=clock.now(),
                part=self._parts,
                name=name,
                step=self.step,
                epoch=self.epochs,
                parsed=end_parsed is not None,
            )
            self._end_parsed = end_parsed
            config = {**self._values.get("config", {}), **values.get("config", {})}
            if self._parts == 1:
                self._values |= {key: value for key, value in values.items() if key not in ("name", "data")}
            if self._parts == 1 or config:
                self._values |= {"config": config} if config else {}
                known = dict(self._values)
                self._queue.put(lambda: self._writer.write_values(known))
            self.write_event(self.part)
            return self.part

    def begin_recording(self, message: Mapping[str, Any]) -> Recording:
        """Begin a part for a recorder.

        Args:
            message: The first message of the recorder.

        Raises:
            RunError: Another part is being recorded.
        """
        part = self.begin_part(message["begin"])
        return Recording(part.part, self, int(message["pid"]))

    def end_part(self, ended: RunEnded, unanswered: Iterable[Command] = ()) -> None:
        """Write the end of the part, after answers to the commands that its recorder has left."""
        for command in unanswered:
            obeyed = command.name == "stop" and ended.outcome is Outcome.STOPPED
            self.answer_for_recorder(command, "the part has ended", obeyed=obeyed)
        with self.lock:
            if not self.part:
                return
            self._last = PartEnded(
                time=ended.time,
                part=self.part.part,
                name=self.part.name,
                outcome=ended.outcome,
                step=self.step,
                epoch=self.epochs,
                seconds=ended.seconds,
                steps_per_second=ended.steps_per_second,
                metrics=ended.metrics,
                reason=ended.reason,
            )
            self.part, self._end_parsed, self.part_ended = None, None, clock.now()
            self.write_event(self._last)
            self._enter_phase()

    def end(self, outcome: Outcome, reason: str, hint: str = "") -> None:
        """End the run, and a part that the script has left; waits until all is written, or cannot be."""
        now = clock.now()
        ended = RunEnded(
            time=now,
            outcome=outcome,
            steps=self.step,
            epochs=self.epochs,
            seconds=now - self._began,
            reason=reason,
            hint=hint,
        )
        if self.part:
            self.end_part(replace(ended, seconds=now - self.part.time))
        if self._last:
            ended = replace(ended, metrics=self._last.metrics, steps_per_second=self._last.steps_per_second)
        self._finish(ended)

    @property
    def stopped(self) -> str:
        """Why the last part was stopped; empty if it was not."""
        return self._last.reason if self._last and self._last.outcome is Outcome.STOPPED else ""

    def _enter_phase(self) -> None:
        self.write_event(PhaseChanged(time=clock.now(), phase=Phase.SCRIPT))
