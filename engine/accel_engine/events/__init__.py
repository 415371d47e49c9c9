"""The events of a run, which engine and dashboard share.

Events are frozen and have no tensors. :func:`to_stored` gives the stored form, which :func:`from_stored`
reads; :func:`to_json_object` gives the form that ``accel-tui train --json`` prints.
"""

from typing import Any

from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.events.progress_events import (
    ARGUMENT_LOST,
    CLASS_WEIGHT_IGNORED,
    CURE,
    EMPTY_BATCH,
    ENGINE_LOST,
    NOT_A_NUMBER,
    OUT_OF_MEMORY,
    UNDO,
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    PartEnded,
    PartStarted,
    PhaseChanged,
    PlanChanged,
    Recovered,
    RunEnded,
    TimeMeasured,
    Validated,
    Warned,
)
from accel_engine.events.setup_events import (
    DevicesFound,
    MicroBatchesTried,
    ModelBuilt,
    RunStarted,
    TensorFlowDevice,
    ThreadsChosen,
    WorkCounted,
    Worker,
    WorkersMet,
    XlaTried,
)
from accel_engine.json_values import MAX_TEXT, convert, encode, parse_object, to_plain

__all__ = [
    "ARGUMENT_LOST",
    "CLASS_WEIGHT_IGNORED",
    "CURE",
    "EMPTY_BATCH",
    "ENGINE_LOST",
    "KINDS",
    "NOT_A_NUMBER",
    "OUT_OF_MEMORY",
    "UNDO",
    "CheckpointSaved",
    "CommandAnswered",
    "DevicesFound",
    "EpochEnded",
    "Event",
    "LearningRateChanged",
    "MicroBatchesTried",
    "ModelBuilt",
    "Outcome",
    "PartEnded",
    "PartStarted",
    "Phase",
    "PhaseChanged",
    "PlanChanged",
    "Recovered",
    "RunEnded",
    "RunStarted",
    "TensorFlowDevice",
    "ThreadsChosen",
    "TimeMeasured",
    "Validated",
    "Warned",
    "WorkCounted",
    "Worker",
    "WorkersMet",
    "XlaTried",
    "from_stored",
    "to_json_object",
    "to_stored",
]

KINDS: dict[str, type[Event]] = {
    kind.kind(): kind
    for kind in (
        RunStarted,
        PhaseChanged,
        WorkersMet,
        DevicesFound,
        ThreadsChosen,
        PartStarted,
        PartEnded,
        ModelBuilt,
        EpochEnded,
        Validated,
        CheckpointSaved,
        TimeMeasured,
        LearningRateChanged,
        XlaTried,
        MicroBatchesTried,
        WorkCounted,
        CommandAnswered,
        Recovered,
        PlanChanged,
        Warned,
        RunEnded,
    )
}


def to_stored(event: Event) -> str:
    """Format an event for storage: a JSON object of its fields, except the time, which has its own column.

    Texts that are too long to be read again are cut.
    """
    values = to_plain(event, MAX_TEXT)
    del values["time"]
    return encode(values)


def from_stored(kind: str, time: float, body: str) -> Event:
    """Parse an event's stored form; fields that this program does not know are ignored.

    Raises:
        KeyError: The kind is unknown.
        ValueError: The body is not a JSON object, lacks a field, or a field has a value that it cannot have.
    """
    return convert({**parse_object(body), "time": time}, KINDS[kind])


def to_json_object(event: Event) -> dict[str, Any]:
    """Convert an event to a JSON object for scripts.

    ``metrics`` are merged into the other fields, except those with the name of a field.
    """
    values: dict[str, Any] = {"event": event.kind(), **to_plain(event)}
    metrics = values.pop("metrics", {})
    return values | {name: value for name, value in metrics.items() if name not in values}
