"""Writes a run as JSON lines, in order of time."""

import heapq
import json
import math
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from accel_engine.events import Event, RunEnded, to_json_object
from accel_engine.run import Chunk, RunInfo, Update
from accel_engine.run.directory.run_paths import LOG, trained_model


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
    numbers = (float(text) for text in values.astype(str))
    return [number if math.isfinite(number) else None for number in numbers]
