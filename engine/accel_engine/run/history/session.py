"""What a run did since a user last started it, also in engines that others have replaced since."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from accel_engine import clock
from accel_engine.events import (
    NOT_A_NUMBER,
    CommandAnswered,
    Event,
    LearningRateChanged,
    PhaseChanged,
    Recovered,
    RunStarted,
)
from accel_engine.run.store.database import reading
from accel_engine.run.store.stored_events import decoded_events

_KINDS = (RunStarted, Recovered, PhaseChanged, LearningRateChanged, CommandAnswered)


@dataclass(frozen=True, slots=True)
class Session:
    """A run since a user last started it.

    Attributes:
        seconds: How long ago that was.
        is_restarted: Whether its engine has replaced another one.
        repairs: How many times it has continued after a loss that was not a number.
        rate: The last learning rate that a command has set, and that is not undone; ``None`` if there is none.
    """

    seconds: float = 0.0
    is_restarted: bool = False
    repairs: int = 0
    rate: LearningRateChanged | None = None


def read_session(directory: Path) -> Session:
    """The present session of a run, from its events.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        rows = database.events(kinds=[kind.kind() for kind in _KINDS])
        return session_of([event for _, event in decoded_events(database, rows)])


def session_of(events: Sequence[Event]) -> Session:
    """The last session of a run.

    Args:
        events: Its events, oldest first; only some kinds matter.
    """
    starts = [index for index, event in enumerate(events) if isinstance(event, RunStarted)]
    if not starts:
        return Session()
    first = next((index for index in reversed(starts) if _is_by_user(events, index)), starts[0])
    session = events[first:]
    return Session(
        max(0.0, clock.now() - session[0].time),
        sum(isinstance(event, RunStarted) for event in session) > 1,
        sum(map(_is_bad_loss, session)),
        _last_rate(session),
    )


def _is_by_user(events: Sequence[Event], start: int) -> bool:
    """Whether a user has started the engine: else it says at once what it recovers from, or is the one before."""
    before = next((event for event in reversed(events[:start]) if isinstance(event, RunStarted)), None)
    began = events[start]
    if isinstance(began, RunStarted) and before and (before.pid, before.host) == (began.pid, began.host):
        return False
    after = next((event for event in events[start + 1 :] if isinstance(event, (Recovered, PhaseChanged))), None)
    return not isinstance(after, Recovered)


def _last_rate(session: Sequence[Event]) -> LearningRateChanged | None:
    """The last learning rate that a command has set. Returning to a checkpoint after a bad loss undoes it."""
    undone = [index for index, event in enumerate(session) if _is_bad_loss(event)]
    changes = [each for each in session[undone[-1] if undone else 0 :] if not isinstance(each, PhaseChanged)]
    found = [
        change
        for change, answer in pairwise(changes)
        if isinstance(change, LearningRateChanged)
        and isinstance(answer, CommandAnswered)
        and answer.command == "learning_rate"
    ]
    return found[-1] if found else None


def _is_bad_loss(event: Event) -> bool:
    return isinstance(event, Recovered) and event.trouble == NOT_A_NUMBER
