"""The base class of events, and the enums of phases and outcomes."""

import re
from dataclasses import dataclass
from enum import StrEnum

from accel_engine.json_values import Number


class Phase(StrEnum):
    """The phase of an engine."""

    STARTING = "starting"
    IMPORTING = "importing"
    BUILDING = "building"
    TRACING = "tracing"
    TRAINING = "training"
    PAUSED = "paused"
    VALIDATING = "validating"
    CHECKPOINTING = "checkpointing"
    SCRIPT = "running the script"
    """A script runs, and no part of its training is being recorded."""


class Outcome(StrEnum):
    """How a run ended. A run whose engine exited unexpectedly has no outcome: it is lost."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a run."""

    time: Number
    """Seconds since the Unix epoch."""

    @classmethod
    def kind(cls) -> str:
        """The event's name in files and JSON lines: ``epoch_ended`` for ``EpochEnded``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
