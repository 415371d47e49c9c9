"""What advice could look at in a run's records, and what it could not judge because it was not recorded."""

from dataclasses import dataclass

from accel_engine.advice.recorded import Recorded
from accel_engine.events import TimeMeasured


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a run's records there is to judge.

    Attributes:
        steps: Number of recorded steps.
        epochs: Number of ended epochs.
        validations: Number of validations.
        readings: Number of times that devices were read.
        missing: What was not recorded and so not judged, in words.
    """

    steps: int = 0
    epochs: int = 0
    validations: int = 0
    readings: int = 0
    missing: tuple[str, ...] = ()


def coverage(recorded: Recorded) -> Coverage:
    """Count what a run has recorded, and name what it has not."""
    stored = recorded.diagnostics
    has_time = recorded.last(TimeMeasured) is not None
    there = {
        "steps": recorded.steps > 0,
        "validations": bool(recorded.validations),
        "readings of devices": bool(recorded.samples),
        "time by activity": has_time,
        "layers": stored.layers is not None,
        "validation examples": stored.validation is not None,
        "the plan": recorded.plan is not None,
    }
    return Coverage(
        steps=recorded.steps,
        epochs=len(recorded.epochs),
        validations=len(recorded.validations),
        readings=len(recorded.samples),
        missing=tuple(name for name, is_there in there.items() if not is_there),
    )
