"""How the time of a run was spent, summed over its records."""

from collections.abc import Mapping
from dataclasses import dataclass

from accel_engine.advice.recorded import Recorded
from accel_engine.events import CheckpointSaved, PlanChanged, Recovered, RunStarted, TimeMeasured

MIN_SECONDS = 1.0
"""Measured time from which shares are judged: the first steps of a run say little about the others."""


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """The time of some steps."""

    seconds: float
    """The whole time without pauses, in seconds."""
    spent: Mapping[str, float]
    """Seconds by what took them: see :class:`accel_engine.events.TimeMeasured`."""
    steps: tuple[int, int]
    """The first step, and the step after the last one."""

    def share(self, what: str) -> float:
        """The share of the whole time, from 0 to 1."""
        return min(1.0, self.spent.get(what, 0.0) / self.seconds) if self.seconds > 0 else 0.0

    @property
    def input_share(self) -> float:
        """The share of the steps' time in which they waited for their batches, from 0 to 1."""
        steps = self.spent.get("steps", 0.0)
        return min(1.0, self.spent.get("input", 0.0) / steps) if steps > 0 else 0.0


def time_spent(recorded: Recorded) -> TimeSpent | None:
    """The time since the last change of the plan, without the first record of each start, if there are others.

    Runs without the engine's measurement have the time of their validations and checkpoints, but not of the input.
    ``None`` if too little is known.
    """
    measured = later_records(recorded) or recorded.all(TimeMeasured)
    if not measured:
        return _of_epochs(recorded)
    spent: dict[str, float] = {}
    for event in measured:
        for what, seconds in event.spent.items():
            spent[what] = spent.get(what, 0.0) + seconds
    seconds = sum(event.seconds for event in measured) - spent.pop("commands", 0.0)
    found = TimeSpent(seconds, spent, (measured[0].first_step, measured[-1].step))
    return found if found.seconds >= MIN_SECONDS else None


def later_records(recorded: Recorded) -> tuple[TimeMeasured, ...]:
    """The measured times since the last change of the plan.

    The first one of the run, and of each start, repair and change, has what happens once, and is left out.
    """
    kept, is_first = list[TimeMeasured](), True
    for event in recorded.events:
        if isinstance(event, PlanChanged):
            kept, is_first = [], True  # what was before says nothing about the changed plan
        elif isinstance(event, RunStarted | Recovered):
            is_first = True
        elif isinstance(event, TimeMeasured):
            kept += [] if is_first else [event]
            is_first = False
    return tuple(kept)


def _of_epochs(recorded: Recorded) -> TimeSpent | None:
    if not recorded.epochs:
        return None
    spent = {
        "steps": sum(event.seconds for event in recorded.epochs),
        "validation": sum(event.seconds for event in recorded.validations if not event.by_command),
        "checkpoints": sum(event.seconds for event in recorded.all(CheckpointSaved)),
    }
    seconds = sum(spent.values())
    return TimeSpent(seconds, spent, (0, recorded.epochs[-1].step)) if seconds >= MIN_SECONDS else None
