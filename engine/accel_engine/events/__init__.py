"""The events of a run, which engine and dashboard share.

Events are frozen and have no tensors. :func:`to_json` gives the stored form, which :func:`from_json` and, for many
events, :func:`from_rows` read; :func:`to_wire` gives the form that ``accel-tui train --json`` prints.
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
