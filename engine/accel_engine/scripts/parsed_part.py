"""Records the values in a script's output as a part of its run."""

import math
import threading
from collections import deque
from collections.abc import Iterable

from accel_engine import clock
from accel_engine.events import Outcome, PartStarted, Phase, PhaseChanged, RunEnded, Validated
from accel_engine.run.store.series_names import VALIDATION_PREFIX, SeriesNames, logged_metric
from accel_engine.run.store.step_rows import StepRow, chunks_of
from accel_engine.scripts.output_parser import STEP, ParsedLine
from accel_engine.scripts.script_run import ScriptRun

WRITE_SECONDS = 0.25
"""Interval of writing steps."""

LAST_STEP_SECONDS = 1.0
"""How long the newest step waits for more lines of it."""

MAX_LINES = 100_000
"""How many lines wait for a full disk; later ones are counted."""

MAX_JUMP = 1_000_000
"""Maximum number of steps that a line may skip; a larger number is not a step, but a time, for example."""

NAME = "output"
"""The part's name."""


class ParsedPart:
    """Writes parsed lines in a thread: one step per line, or the step that the line names.

    A line with values of a validation alone is no step: they are of the steps before it.

    A part begins with the first line, and ends when a recorder in the script begins one. Lines that are read during the
    part of a recorder are left out, also if they are looked at after its end: it records the same training.

    Args:
        run: The script's run.
    """

    def __init__(self, run: ScriptRun) -> None:
        self._run = run
        self._lines: deque[ParsedLine] = deque()
        self._dropped = 0
        self._names = SeriesNames()
        self._part: PartStarted | None = None
        self._is_counted = False
        self._rows: list[StepRow] = []
        self._validations: dict[int, tuple[float, dict[str, float]]] = {}
        self._validated: tuple[int, set[str]] = 0, set()
        self._metrics: dict[str, float] = {}
        self._next, self._ended = 0, 0.0
        self._warned: set[str] = set()
        self._finishing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="parsed-lines", daemon=True)
        self._thread.start()

    def add(self, lines: Iterable[ParsedLine]) -> None:
        """Add lines; returns at once."""
        for line in lines:
            if len(self._lines) < MAX_LINES:
                self._lines.append(line)
            else:
                self._dropped += 1

    def finish(self) -> None:
        """Write what was added, and end the part."""
        self._finishing.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._finishing.wait(WRITE_SECONDS):
            self._take()
        self._take()
        self._end()

    def _take(self) -> None:
        """Write the lines that were added."""
        with self._run.lock:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            lines = [line for line in lines if line.time > self._run.part_ended]
            if lines and self._begin(lines[0].time):
                self._add_rows(lines)
            self._write_rows(everything=False)
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self._run.warn(f"the values of {dropped:,} lines are missing: the disk was full")

    def _end(self) -> None:
        """Write what was added, and end the part, if it is being recorded."""
        with self._run.lock:
            if self._part and self._part is self._run.part:
                self._take()
                self._write_rows(everything=True)
                self._run.end_part(self._result())

    def _begin(self, time: float) -> bool:
        """Begin a part with a line of this time; return whether it is the one that is being recorded."""
        if self._run.part is None:
            self._rows.clear()
            self._validations.clear()
            self._metrics = {}
            self._part = self._run.begin_part({"name": NAME}, self._end)
            self._is_counted = False
            self._next, self._ended = self._part.step, time
            self._validated = self._next, set()
            self._run.write_event(PhaseChanged(time=clock.now(), phase=Phase.TRAINING))
        return self._run.part is self._part

    def _add_rows(self, lines: Iterable[ParsedLine]) -> None:
        rows = self._rows
        for line in lines:
            values, validated = self._sorted(line)
            step = self._step_of(line, rows[-1].step + 1 if rows else self._next)
            if validated:
                has_step = bool(values) or (STEP in line.values and not self._is_counted)
                self._add_validation(step + has_step, line.time, validated, is_counted=has_step)
            if not values:
                continue
            if rows and rows[-1].step == step:
                rows[-1] = StepRow(step, rows[-1].time, {**rows[-1].values, **values})
            elif step < self._next:
                self._warn_once("values of a step that came more than a second after it are left out")
            else:
                rows.append(StepRow(step, line.time, values))
        for note in self._names.take_notes():
            self._run.warn(note)

    def _sorted(self, line: ParsedLine) -> tuple[dict[str, float], dict[str, float]]:
        """The values of training and those of a validation in a line."""
        found: tuple[dict[str, float], dict[str, float]] = {}, {}
        for name, value in line.values.items():
            if name != STEP:
                of_validation, metric = logged_metric(name)
                found[of_validation][metric] = value
        return self._names.scalars(found[False]), self._names.scalars(found[True])

    def _add_validation(self, steps: int, time: float, metrics: dict[str, float], *, is_counted: bool) -> None:
        """Add metrics after some steps; without a step between them, those of the same names count on."""
        last, known = self._validated
        if not is_counted and last >= steps:
            steps = last + bool(known & metrics.keys())
        self._validated = steps, {*metrics, *(known if steps == last else ())}
        self._validations[steps] = time, self._validations.get(steps, (time, {}))[1] | metrics

    def _step_of(self, line: ParsedLine, expected: int) -> int:
        """The step of a line, in the run; ``expected`` is the one after the line before."""
        number = line.values.get(STEP, math.nan)
        if self._is_counted or not self._part or not number.is_integer():
            return expected
        step = self._part.step + int(number)
        if step < expected - 1 or step > expected + MAX_JUMP:
            self._is_counted = True
            why = "after a later one" if step < expected else f"after {expected - 1 - self._part.step:,}"
            self._warn_once(f"the output has step {int(number):,} {why}: from here on, lines are counted")
            return expected
        return step

    def _write_rows(self, *, everything: bool) -> None:
        """Write the steps, but not yet the last of the last second: the next line may be of the same step."""
        if self._run.part is not self._part:
            return
        ready = everything or not self._rows or clock.now() - self._rows[-1].time > LAST_STEP_SECONDS
        rows, self._rows = (self._rows, []) if ready else (self._rows[:-1], self._rows[-1:])
        for chunk in chunks_of(rows, self._next, self._ended):
            self._run.write_chunk(chunk.first_step, chunk.started, chunk.ended, chunk.series)
        if rows:
            self._next, self._ended = rows[-1].step + 1, rows[-1].time
        for steps in [steps for steps in self._validations if ready or steps <= self._next]:
            time, metrics = self._validations.pop(steps)
            self._metrics |= {VALIDATION_PREFIX + name: value for name, value in metrics.items()}
            validated = Validated(time=time, epoch=self._run.epochs, step=steps, metrics=metrics, seconds=0.0)
            self._run.write_event(validated)

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            self._run.warn(message)

    def _result(self) -> RunEnded:
        now, began = clock.now(), self._part.time if self._part else 0.0
        return RunEnded(
            time=now,
            outcome=Outcome.FINISHED,
            steps=self._run.step,
            epochs=0,
            seconds=now - began,
            metrics=self._metrics,
        )
