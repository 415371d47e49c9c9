"""A run's contents as tables, read in batches of rows."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.events import Event, ModelBuilt, PartStarted, RunStarted, Validated, to_json_object
from accel_engine.run.reader import RunReader, drop_discarded
from accel_engine.run.sample_packing import SampleUnpacker

_EVENTS = 1 << 12

Column = npt.NDArray[Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        columns: Column types by name: ``int64``, ``float32``, ``float64`` or ``str``.
        batches: Reads batches of rows, each a list of the columns in that order; ``None`` is a missing value.
    """

    columns: Mapping[str, str]
    batches: Callable[[], Iterator[list[Column]]]


def steps(source: RunReader) -> Table:
    """One row per step, counted from 0: its end time, all series, and steps per second."""
    names = source.series()
    new = source.new_steps()
    epoch_of = _epochs(source)

    def batches() -> Iterator[list[Column]]:
        if new is None:
            return
        for batch in source.steps(0, new.stop):
            keys = [batch.steps, *([epoch_of(batch.steps)] if epoch_of else []), batch.times]
            yield [*keys, *(batch.series[name] for name in names), batch.steps_per_second]

    keys = {"step": "int64", **({"epoch": "int64"} if epoch_of else {}), "time": "float64"}
    series = {name if name not in keys else f"metric_{name}": "float32" for name in names}
    return Table({**keys, **series, "steps_per_second": "float32"}, batches)


def validation_table(source: RunReader) -> Table:
    """One row per validation: steps taken, epoch, time, every metric, and its duration."""
    rows = read_validations(source)
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    columns: list[Column] = [[row.step for row in rows], [row.epoch for row in rows], [row.time for row in rows]]
    columns += [[row.metrics.get(name) for row in rows] for name in names]
    columns.append([row.seconds for row in rows])
    types = {"step": "int64", "epoch": "int64", "time": "float64", **dict.fromkeys(names, "float64")}
    return Table({**types, "seconds": "float64"}, lambda: iter([columns] if rows else []))


def samples(source: RunReader) -> Table:
    """One row per device reading: its value and unit, or why it is missing."""

    def batches() -> Iterator[list[Column]]:
        for _, samples in source.sample_batches(SampleUnpacker()):
            rows = [
                (sample.time, sample.device, name, reading.value, reading.unit, reading.reason or None)
                for sample in samples
                for name, reading in sample.readings.items()
            ]
            yield [list(column) for column in zip(*rows, strict=True)]

    types = {"time": "float64", "device": "str", "reading": "str", "value": "float64", "unit": "str", "reason": "str"}
    return Table(types, batches)


def events(source: RunReader) -> Table:
    """One row per event, in order: its time, kind, and fields as a JSON object."""

    def batches() -> Iterator[list[Column]]:
        found = (event for _, event in source.events())
        while batch := list(islice(found, _EVENTS)):
            yield [
                [event.time for event in batch],
                [event.kind() for event in batch],
                [_details(event) for event in batch],
            ]

    return Table({"time": "float64", "event": "str", "details": "str"}, batches)


TABLES: dict[str, Callable[[RunReader], Table]] = {
    "steps": steps,
    "validation": validation_table,
    "samples": samples,
    "events": events,
}
"""Tables by name."""


def read_validations(source: RunReader) -> list[Validated]:
    """Read the validations, except those of discarded steps."""
    events = drop_discarded(event for _, event in source.events(0, RunStarted, Validated))
    return [event for event in events if isinstance(event, Validated)]


def run_description(source: RunReader) -> dict[str, Any]:
    """A run's id, name, status, creation time, host and plan."""
    info = source.info()
    return {
        "run": info.id,
        "name": info.name,
        "status": str(info.status),
        "created": info.created,
        "host": info.host,
        "plan": info.plan_values,
    }


def shortest_texts(values: npt.NDArray[np.floating]) -> npt.NDArray[np.str_]:
    """Format numbers as the shortest texts that parse to the same numbers: ``0.1`` for a float32 0.1."""
    return values.astype(np.str_)


def _details(event: Event) -> str:
    return json.dumps({name: value for name, value in to_json_object(event).items() if name not in ("event", "time")})


def _epochs(source: RunReader) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]] | None:
    """A function that returns the epochs of steps, counted from 1; ``None`` if the length of any epoch is unknown."""
    parts: list[tuple[int, int]] = []
    lengths = [0]
    for _, event in source.events(0, PartStarted, ModelBuilt):
        if isinstance(event, PartStarted):
            lengths = [*lengths, 0] if parts else [0]
            parts.append((event.step, event.epoch))
        elif isinstance(event, ModelBuilt):
            lengths[-1] = event.steps_per_epoch or 0
    if not all(lengths):
        return None
    first_steps, first_epochs = np.array(parts or [(0, 0)]).T
    steps_per_epoch = np.array(lengths)

    def epochs(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        part = np.searchsorted(first_steps, steps, side="right") - 1
        number: npt.NDArray[np.int64] = first_epochs[part] + (steps - first_steps[part]) // steps_per_epoch[part] + 1
        return number

    return epochs
