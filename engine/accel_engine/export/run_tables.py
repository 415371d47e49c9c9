"""A run's contents as tables, read in batches of rows."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.events import (
    EpochEnded,
    Event,
    ModelBuilt,
    PartEnded,
    PartStarted,
    RunStarted,
    Validated,
    to_json_object,
)
from accel_engine.run.history.history import History, fold
from accel_engine.run.reading.reader import RunReader, drop_discarded
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.text import encodable

_EVENTS = 1 << 12

Column = npt.NDArray[Any] | Sequence[Any]

Steps = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table."""

    columns: Mapping[str, str]
    """Column types by name: ``int64``, ``float32``, ``float64`` or ``str``."""
    batches: Callable[[], Iterator[list[Column]]]
    """Reads batches of rows, each a list of the columns in that order; ``None`` is a missing value."""


def steps(source: RunReader) -> ExportedTable:
    """One row per step, counted from 0: epoch, part of a script, end time, all series, and steps per second.

    An inference bench has one per batch size instead: end time, and all other series.
    """
    if by := source.info().x_series:
        return _by_series(source, by)
    names = source.series()
    new = source.new_steps()
    places = _places(source)

    def batches() -> Iterator[list[Column]]:
        if new is None:
            return
        for batch in source.steps(0, new.stop):
            keys = [batch.steps, *(place(batch.steps) for place in places.values()), batch.times]
            yield [*keys, *(batch.series[name] for name in names), batch.steps_per_second]

    keys = {"step": "int64", **dict.fromkeys(places, "int64"), "time": "float64"}
    return ExportedTable(_with_values(keys, names, {"steps_per_second": "float32"}, "float32"), batches)


def _by_series(source: RunReader, by: str) -> ExportedTable:
    """One row per value of a series, by which the others are."""
    names = [name for name in source.series() if name != by]
    new = source.new_steps()

    def batches() -> Iterator[list[Column]]:
        for batch in source.steps(0, new.stop) if new else ():
            placed = batch.placed_by(by)
            yield [placed.steps, placed.times, *(placed.series[name] for name in names)]

    return ExportedTable(_with_values({by: "int64", "time": "float64"}, names, {}, "float32"), batches)


def _validation_table(source: RunReader) -> ExportedTable:
    """One row per validation: steps taken, epoch, part of a script, time, every metric, and its duration."""
    rows, parts = _validations(source)
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    columns: list[Column] = [[row.step for row in rows], [row.epoch for row in rows]]
    columns += [*([parts] if parts is not None else []), [row.time for row in rows]]
    columns += [[row.metrics.get(name) for row in rows] for name in names]
    columns.append([row.seconds for row in rows])
    part = {} if parts is None else {"part": "int64"}
    keys = {"step": "int64", "epoch": "int64", **part, "time": "float64"}
    return ExportedTable(
        _with_values(keys, names, {"seconds": "float64"}, "float64"), lambda: iter([columns] if rows else [])
    )


def samples(source: RunReader) -> ExportedTable:
    """One row per device reading: its value and unit, or why it is missing."""

    def batches() -> Iterator[list[Column]]:
        for _, samples in source.sample_batches(SampleUnpacker()):
            rows = [
                (
                    sample.time,
                    encodable(sample.device),
                    encodable(name),
                    reading.value,
                    encodable(reading.unit),
                    encodable(reading.reason) or None,
                )
                for sample in samples
                for name, reading in sample.readings.items()
            ]
            if rows:
                yield [list(column) for column in zip(*rows, strict=True)]

    types = {"time": "float64", "device": "str", "reading": "str", "value": "float64", "unit": "str", "reason": "str"}
    return ExportedTable(types, batches)


def events(source: RunReader) -> ExportedTable:
    """One row per event, in order: its time, kind, and fields as a JSON object."""

    def batches() -> Iterator[list[Column]]:
        found = (event for _, event in source.events())
        while batch := list(islice(found, _EVENTS)):
            yield [
                [event.time for event in batch],
                [event.kind() for event in batch],
                [_details(event) for event in batch],
            ]

    return ExportedTable({"time": "float64", "event": "str", "details": "str"}, batches)


TABLE_READERS: dict[str, Callable[[RunReader], ExportedTable]] = {
    "steps": steps,
    "validation": _validation_table,
    "samples": samples,
    "events": events,
}
"""Tables by name."""


def validation_objects(source: RunReader) -> list[dict[str, Any]]:
    """The validations as JSON objects, except of discarded steps; in a run with parts, each with its ``part``."""
    rows, parts = _validations(source)
    objects = [to_json_object(row) for row in rows]
    return [row | {"part": part} for row, part in zip(objects, parts, strict=True)] if parts is not None else objects


def run_description(source: RunReader) -> dict[str, Any]:
    """A run's id, name, kind, status, creation time, host and plan."""
    info = source.info()
    return {
        "run": info.id,
        "name": info.name,
        "kind": info.kind,
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


def _with_values(keys: Mapping[str, str], names: Iterable[str], last: Mapping[str, str], value: str) -> dict[str, str]:
    """The columns of a table: the keys, the values, and the last ones; a value with the name of another is renamed."""
    values = {f"metric_{name}" if name in keys or name in last else encodable(name): value for name in names}
    return {**keys, **values, **last}


def _validations(source: RunReader) -> tuple[list[Validated], list[int | None] | None]:
    """The validations, except of discarded steps, and the part of each; ``None`` for a run without parts.

    A script's loop may tell only later that an epoch has ended before a validation.
    """
    rows: list[Validated] = []
    ends, epochs = [0], [0]
    parts: list[int | None] = []
    part, has_parts = None, False
    kinds = (RunStarted, PartStarted, PartEnded, EpochEnded, Validated)
    for event in drop_discarded(event for _, event in source.events(0, *kinds)):
        match event:
            case PartStarted():
                part, has_parts = event.part, True
            case PartEnded():
                part = None
            case EpochEnded():
                ends.append(event.step)
                epochs.append(event.epoch)
            case Validated():
                rows.append(event)
                parts.append(part)
    rows = [replace(row, epoch=max(row.epoch, epochs[bisect_right(ends, row.step) - 1])) for row in rows]
    return rows, parts if has_parts else None


def _places(source: RunReader) -> dict[str, Callable[[Steps], Steps]]:
    """Functions that return the epochs and the parts of steps, both counted from 1, by name of the column.

    Without epochs if those of a part are unknown, and without parts unless a script has recorded some. Every step of
    such a script belongs to a part.
    """
    kinds = (RunStarted, PartStarted, ModelBuilt, EpochEnded)
    history = fold(History(), (event for _, event in source.events(0, *kinds)))
    first_steps, numbers = np.array([(part.started.step, part.started.part) for part in history.parts] or [(0, 0)]).T
    starts, epochs, lengths = np.array(history.epoch_spans).T

    def part(steps: Steps) -> Steps:
        return numbers[np.searchsorted(first_steps, steps, side="right") - 1]

    def epoch(steps: Steps) -> Steps:
        span = np.searchsorted(starts, steps, side="right") - 1
        return epochs[span] + np.where(lengths[span], (steps - starts[span]) // np.maximum(lengths[span], 1), 0)

    places: dict[str, Callable[[Steps], Steps]] = {"epoch": epoch} if epochs.all() else {}
    return {**places, "part": part} if history.parts else places
