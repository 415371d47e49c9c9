"""What a run says: past-tense facts with plain numbers, the only thing that engine and screen share.

Every event is frozen and holds no tensor. :func:`to_json` gives its stored form, which :func:`from_json` and, many at
a time, :func:`from_rows` read; :func:`to_wire` gives the form that ``accel-tui train --json`` prints.
"""

from accel_engine.events.basis import (
    DevicesFound,
    MicroBatchesTried,
    ModelBuilt,
    RunStarted,
    WorkCounted,
    WorkersMet,
    XlaTried,
)
from accel_engine.events.course import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    PhaseChanged,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.events.forms import KINDS, from_json, from_rows, to_json, to_wire

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
