"""The JSON lines that scripts read: one object a line, in order of time."""

import heapq
import json
import math
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from accel_engine.events import Event, to_wire
from accel_engine.run import Chunk, RunInfo, Update
from accel_engine.run.paths import LOG

Moment = Event | Chunk


class JsonLines:
    """Shows a run as JSON lines.

    Args:
        stream: Where to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, update: Update, info: RunInfo | None = None) -> None:
        """Write a line for every event and every chunk, at once."""
        del info
        chunks: Iterable[Moment] = update.chunks
        events: Iterable[Moment] = update.events
        # A chunk comes before the event of its last step.
        for moment in heapq.merge(chunks, events, key=_time):
            self._write(_steps(moment) if isinstance(moment, Chunk) else to_wire(moment))
        self._stream.flush()

    def lost(self, info: RunInfo, steps: int) -> None:
        """Write the last line of a run whose engine died without a word."""
        self._write({"event": "run_lost", "run": info.id, "steps": steps, "log": str(info.directory / LOG)})
        self._stream.flush()

    def clear(self) -> None:
        """Nothing is in the way of a message: it goes to standard error."""

    def _write(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line, allow_nan=False) + "\n")


def _time(moment: Moment) -> float:
    return moment.ended if isinstance(moment, Chunk) else moment.time


def _steps(chunk: Chunk) -> dict[str, Any]:
    series = {name: _numbers(values) for name, values in chunk.series.items()}
    return {"event": "steps", "time": chunk.ended, "first_step": chunk.first_step, "count": chunk.count, **series}


def _numbers(values: npt.NDArray[np.float32]) -> list[float | None]:
    """The numbers with the fewest digits that give the same float32 again, so that 0.1 stays 0.1; else null."""
    numbers = (float(text) for text in values.astype(str))
    return [number if math.isfinite(number) else None for number in numbers]
