"""The events of a run, which engine and dashboard share.

Events are frozen and have no tensors. :func:`to_stored` gives the stored form, which :func:`from_stored`
reads; :func:`to_json_object` gives the form that ``accel-tui train --json`` prints.
"""

from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.events.progress_events import (
    CURE,
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
from accel_engine.events.serialization import KINDS, from_stored, to_json_object, to_stored
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

__all__ = [
    "CURE",
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
