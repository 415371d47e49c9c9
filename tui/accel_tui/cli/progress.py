"""Shows a run as log lines, on a terminal with a progress bar below them, or as JSON lines in order of time."""

import heapq
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from rich.console import RenderableType

from accel_engine.events import Event, Phase, RunEnded, to_json_object
from accel_engine.run import Chunk, RunInfo, Update
from accel_engine.run.directory.run_paths import LOG, trained_model
from accel_engine.run.store.series_names import LEARNING_RATE, VALIDATION_PREFIX
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.cli.event_text import format_epoch, format_event, means
from accel_tui.cli.live import LiveArea, Size, bar_width, cut_line, with_bar
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState

EVERY = 5.0
"""Seconds between two progress lines of an epoch."""

Line = tuple[float, str]
"""A time in seconds since the Unix epoch, and a text."""


class Log:
    """Shows a run as lines: one per event, and a progress line every few seconds.

    Args:
        stream: The output.
        clock: Monotonic seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = RunState()
        """The run up to the last update shown."""
        self._stream = stream
        self._clock = clock
        self._due = clock() + EVERY

    def show(self, update: Update, info: RunInfo | None = None) -> None:
        """Write a line for each new event, or a progress line when one is due."""
        self.state = replace(self.state, info=info)
        lines: list[Line] = []
        for event in update.events:  # one by one: each line shows the state at its time
            self.state = apply_update(self.state, Update(events=(event,)))
            lines += [(event.time, printable_line(line)) for line in format_event(event, self.state).splitlines()]
        self.state = apply_update(self.state, Update(chunks=update.chunks))
        self._put(lines)

    def lost(self, info: RunInfo, steps: int) -> None:
        """Write that the engine exited unexpectedly."""
        self._put([(info.now(), printable_line(f"run {info.id} was lost after step {steps:,}"))])

    def clear(self) -> None:
        """Flush, so that a message on standard error comes after these lines."""
        self._stream.flush()

    def _put(self, lines: Sequence[Line]) -> None:
        now = self._clock()
        has_progress = _is_training(self.state) and (self.state.built or self.state.step)
        if not lines and now >= self._due and has_progress:
            lines = ((self.state.now, _progress_at_step(self.state)),)
        if lines:
            self._due = now + EVERY
            for timestamp, text in lines:
                self._stream.write(f"{time.strftime('%H:%M:%S', time.localtime(timestamp))} {text}\n")
            self._stream.flush()


class Bar(Log):
    """Shows a run on a terminal: a line per event, above a live progress bar.

    Args:
        stream: The terminal.
        size: Tells its present columns and lines.
    """

    def __init__(self, stream: TextIO, size: Size = shutil.get_terminal_size) -> None:
        super().__init__(stream)
        self._live = LiveArea(stream, size)

    def clear(self) -> None:
        """Erase the bar until the next update."""
        self._live.clear()

    def _put(self, lines: Sequence[Line]) -> None:
        self._live.show(self._bar(), [text for _, text in lines])

    def _bar(self) -> RenderableType | None:
        state, width = self.state, self._live.width
        if state.ended or state.phase is None:
            return None
        if not state.total_steps and _is_training(state):
            return cut_line(_progress_at_step(state))  # until the first epoch has ended
        if not state.total_steps:
            return cut_line(f"{state.phase.phase} {numbers.duration(state.now - state.phase.time)}")
        return with_bar(state.progress or 0.0, progress(state, width - bar_width(width) - 2), width)


def progress(state: RunState, width: float = math.inf) -> str:
    """Format the progress of a run in about 70 columns, with the MFU if ``width`` allows."""
    parts = [format_epoch(state.current_epoch, state) if state.current_epoch else f"step {state.step:,}"]
    metrics = {name: curve.last_value for name, curve in state.curves.items() if name != LEARNING_RATE}
    counts = state.monitor.removeprefix(VALIDATION_PREFIX)
    first = [name for name in dict.fromkeys((*list(metrics)[:1], counts, *metrics)) if name in metrics][:2]
    parts.append(means({name: metrics[name] for name in first}))
    if state.phase and not _is_training(state):
        parts.append(str(state.phase.phase))
    elif state.steps_per_second:
        parts.append(f"{numbers.compact(state.steps_per_second)} steps/s")
        if state.remaining is not None:
            parts.append(f"{numbers.duration(state.remaining)} left")
    text = printable_line("  ".join(filter(None, parts)))
    mfu = f"  MFU {percent(state.mfu)}" if state.mfu is not None and _is_training(state) else ""
    return text + mfu if len(text + mfu) <= width else text


def _progress_at_step(state: RunState) -> str:
    """The progress, with the step within an epoch, so that it differs from the line at the end of an epoch."""
    text = progress(state)  # begins with the step if there are no epochs
    return text if state.current_epoch is None else f"step {state.step:,}  {text}"


def _is_training(state: RunState) -> bool:
    return state.phase is not None and state.phase.phase is Phase.TRAINING


class JsonLines:
    """Shows a run as JSON lines.

    Args:
        stream: The output.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, update: Update, info: RunInfo | None = None) -> None:
        """Write a line for every event and every chunk, and flush."""
        chunks: Iterable[Event | Chunk] = update.chunks
        events: Iterable[Event | Chunk] = update.events
        # A chunk comes before the event of its last step.
        for item in heapq.merge(chunks, events, key=_time):
            line = _steps(item) if isinstance(item, Chunk) else to_json_object(item)
            if isinstance(item, RunEnded):
                model = info and trained_model(info.directory)
                line["model"] = str(model) if model else None
            self._write(line)
        self._stream.flush()

    def lost(self, info: RunInfo, steps: int) -> None:
        """Write the last line of a run whose engine exited unexpectedly."""
        self._write({"event": "run_lost", "run": info.id, "steps": steps, "log": str(info.directory / LOG)})
        self._stream.flush()

    def clear(self) -> None:
        """Do nothing: messages go to standard error."""

    def _write(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line, allow_nan=False) + "\n")


def _time(item: Event | Chunk) -> float:
    return item.ended if isinstance(item, Chunk) else item.time


def _steps(chunk: Chunk) -> dict[str, Any]:
    series = {name: _numbers(values) for name, values in chunk.series.items()}
    return {"event": "steps", "time": chunk.ended, "first_step": chunk.first_step, "count": chunk.count, **series}


def _numbers(values: npt.NDArray[np.float32]) -> list[float | None]:
    """The shortest numbers that round to the same float32, so that 0.1 stays 0.1; ``None`` if not finite."""
    shortest = (float(text) for text in values.astype(str))
    return [number if math.isfinite(number) else None for number in shortest]
