"""Converts events to and from their stored form, and to JSON lines for scripts."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.events.progress_events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    PartEnded,
    PartStarted,
    PhaseChanged,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.events.setup_events import (
    DevicesFound,
    MicroBatchesTried,
    ModelBuilt,
    RunStarted,
    TensorFlowDevice,
    WorkCounted,
    Worker,
    WorkersMet,
    XlaTried,
)

KINDS: dict[str, type[Event]] = {
    kind.kind(): kind
    for kind in (
        RunStarted,
        PhaseChanged,
        WorkersMet,
        DevicesFound,
        PartStarted,
        PartEnded,
        ModelBuilt,
        EpochEnded,
        Validated,
        CheckpointSaved,
        LearningRateChanged,
        XlaTried,
        MicroBatchesTried,
        WorkCounted,
        CommandAnswered,
        Warned,
        RunEnded,
    )
}

_ENUMS: dict[str, type[StrEnum]] = {"phase": Phase, "outcome": Outcome}

_RECORDS: dict[str, type[TensorFlowDevice | Worker]] = {"devices": TensorFlowDevice, "workers": Worker}


def to_stored(event: Event) -> str:
    """Format an event for storage: a JSON object of its fields, except the time, which has its own column."""
    values = asdict(event)
    del values["time"]
    return json.dumps(_finite(values), separators=(",", ":"))


def from_stored(kind: str, time: float, body: str) -> Event:
    """Parse an event's stored form.

    Raises:
        KeyError: The kind is unknown.
    """
    (event,) = from_stored_rows([(kind, time, body)])
    return event


def from_stored_rows(rows: Sequence[tuple[str, float, str]]) -> Iterator[Event]:
    """Parse the stored forms of many events, faster than one by one.

    Args:
        rows: Kind, time and stored form of each.

    Raises:
        KeyError: A kind is unknown.
    """
    bodies = json.loads(f"[{','.join(body for _, _, body in rows)}]")
    for (kind, time, _), values in zip(rows, bodies, strict=True):
        values["time"] = time
        _restore(values)
        yield KINDS[kind].parse(values)


def to_json_object(event: Event) -> dict[str, Any]:
    """Convert an event to a JSON object for scripts.

    ``metrics`` are merged into the other fields, except those with the name of a field.
    """
    values: dict[str, Any] = {"event": event.kind(), **_finite(asdict(event))}
    metrics = values.pop("metrics", {})
    return values | {name: value for name, value in metrics.items() if name not in values}


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value


def _restore(values: dict[str, Any]) -> None:
    """Convert JSON values to the types of events, in place."""
    for name, value in values.items():
        if record := _RECORDS.get(name):
            known = record.__dataclass_fields__
            values[name] = tuple(record(**{key: each[key] for key in known if key in each}) for each in value)
        elif isinstance(value, list):
            values[name] = tuple(value)
        elif isinstance(value, dict) and name == "metrics" and None in value.values():
            values[name] = {key: math.nan if number is None else number for key, number in value.items()}
    for name in _ENUMS.keys() & values.keys():
        values[name] = _ENUMS[name](values[name])
