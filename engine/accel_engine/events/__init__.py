"""What a run says: past-tense facts with plain numbers, the only thing that engine and screen share.

Every event is frozen and holds no tensor. :func:`to_json` gives its stored form, which :func:`from_json` and, many at
a time, :func:`from_rows` read; :func:`to_wire` gives the form that ``accel-tui train --json`` prints.
"""

from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.events.progress_events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    PhaseChanged,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.events.serialization import KINDS, from_json, from_rows, to_json, to_wire
from accel_engine.events.setup_events import (
    DevicesFound,
    MicroBatchesTried,
    ModelBuilt,
    RunStarted,
    WorkCounted,
    WorkersMet,
    XlaTried,
)

__all__ = [
    "KINDS",
    "CheckpointSaved",
    "CommandAnswered",
    "DevicesFound",
    "EpochEnded",
    "Event",
    "LearningRateChanged",
    "MicroBatchesTried",
    "ModelBuilt",
    "Outcome",
    "Phase",
    "PhaseChanged",
    "RunEnded",
    "RunStarted",
    "Validated",
    "Warned",
    "WorkCounted",
    "WorkersMet",
    "XlaTried",
    "from_json",
    "from_rows",
    "to_json",
    "to_wire",
]
