"""What a run holds as tables: columns of one type, some rows at a time."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.events import Event, ModelBuilt, RunStarted, Validated, to_wire
from accel_engine.run.bulk_reader import BulkReader, drop_discarded
from accel_engine.run.sample_packing import SampleUnpacker

_EVENTS = 1 << 12

Column = npt.NDArray[Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        columns: The types of its columns by name: ``int64``, ``float32``, ``float64`` or ``str``.
        parts: Reads its columns, in that order, some rows at a time; ``None`` stands for nothing.
    """

    columns: Mapping[str, str]
    parts: Callable[[], Iterator[list[Column]]]


def steps(source: BulkReader) -> Table:
    """A row a step, counted from 0: when it ended, everything recorded of it, and the pace of its dispatch."""
    names = source.series()
    new = source.new_steps()
    epoch = _steps_per_epoch(source)

    def parts() -> Iterator[list[Column]]:
        if new is None:
            return
        for piece in source.steps(0, new.last):
            numbers = [piece.steps, *([piece.steps // epoch + 1] if epoch else []), piece.times]
            yield [*numbers, *(piece.series[name] for name in names), piece.rates]

    places = {"step": "int64", **({"epoch": "int64"} if epoch else {}), "time": "float64"}
    measured = {name if name not in places else f"metric_{name}": "float32" for name in names}
    return Table({**places, **measured, "steps_per_second": "float32"}, parts)


def validation(source: BulkReader) -> Table:
    """A row a validation that counts still: the steps taken by then, and every metric."""
    rows = points(source)
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    columns: list[Column] = [[row.step for row in rows], [row.epoch for row in rows], [row.time for row in rows]]
    columns += [[row.metrics.get(name) for row in rows] for name in names]
    columns.append([row.seconds for row in rows])
    types = {"step": "int64", "epoch": "int64", "time": "float64", **dict.fromkeys(names, "float64")}
    return Table({**types, "seconds": "float64"}, lambda: iter([columns] if rows else []))


def samples(source: BulkReader) -> Table:
    """A row a reading of a device: its value with its unit, or why there is none."""

    def parts() -> Iterator[list[Column]]:
        for _, some in source.samples(SampleUnpacker()):
            rows = [
                (sample.time, sample.device, name, reading.value, reading.unit, reading.reason or None)
                for sample in some
                for name, reading in sample.readings.items()
            ]
            yield [list(column) for column in zip(*rows, strict=True)]

    types = {"time": "float64", "device": "str", "reading": "str", "value": "float64", "unit": "str", "reason": "str"}
    return Table(types, parts)


def events(source: BulkReader) -> Table:
    """A row an event, in order: when, what, and all that it says as a JSON object."""

    def parts() -> Iterator[list[Column]]:
        found = (event for _, event in source.events())
        while some := list(islice(found, _EVENTS)):
            yield [
                [event.time for event in some],
                [event.kind() for event in some],
                [_details(event) for event in some],
            ]

    return Table({"time": "float64", "event": "str", "details": "str"}, parts)


TABLES: dict[str, Callable[[BulkReader], Table]] = {
    "steps": steps,
    "validation": validation,
    "samples": samples,
    "events": events,
}
"""What of a run can be had as a table."""


def points(source: BulkReader) -> list[Validated]:
    """The validations of the steps that the run has."""
    said = drop_discarded(event for _, event in source.events(0, RunStarted, Validated))
    return [event for event in said if isinstance(event, Validated)]


def description(source: BulkReader) -> dict[str, Any]:
    """What a run is: its id, name, status, when it was made, and its plan."""
    info = source.info()
    return {
        "run": info.id,
        "name": info.name,
        "status": str(info.status),
        "created": info.created,
        "host": info.host,
        "plan": info.values,
    }


def texts(values: npt.NDArray[np.floating]) -> npt.NDArray[np.str_]:
    """The shortest texts that give the same numbers again: a float32 0.1 is ``0.1``."""
    return values.astype(np.str_)


def _details(event: Event) -> str:
    return json.dumps({name: value for name, value in to_wire(event).items() if name not in ("event", "time")})


def _steps_per_epoch(source: BulkReader) -> int:
    built = [event for _, event in source.events(0, ModelBuilt) if isinstance(event, ModelBuilt)]
    return (built[-1].steps_per_epoch or 0) if built else 0
