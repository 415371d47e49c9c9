"""Reads the rows of ``event`` as events."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from accel_engine.events import KINDS, EpochEnded, Event, ModelBuilt, from_stored
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.schema import EventRow

E = TypeVar("E", bound=Event)


def decoded_events(database: RunDatabase, rows: Iterable[EventRow]) -> Iterator[tuple[int, Event]]:
    """Decode rows, each with its id; kinds that this program does not know are ignored."""
    for row in rows:
        if row.kind in KINDS:
            yield row.id, database.decode("event", row.id, from_stored, row.kind, row.time, row.body)


def last_event(database: RunDatabase, *kinds: type[E]) -> E | None:
    """The last event of any of these kinds; ``None`` if there is none."""
    row = database.last_event([kind.kind() for kind in kinds])
    return next(_of_kinds(database, [row] if row else [], *kinds), None)


def last_of_each(database: RunDatabase, *kinds: type[E]) -> list[E]:
    """The last event of each of these kinds, oldest first."""
    return list(_of_kinds(database, database.last_of_each([kind.kind() for kind in kinds]), *kinds))


def all_events(database: RunDatabase, kind: type[E]) -> list[E]:
    """All events of a kind, oldest first."""
    return list(_of_kinds(database, database.events(kinds=[kind.kind()]), kind))


def _of_kinds(database: RunDatabase, rows: Iterable[EventRow], *kinds: type[E]) -> Iterator[E]:
    return (event for _, event in decoded_events(database, rows) if isinstance(event, kinds))


def _trained_epochs(step: int, steps_per_epoch: int, last_epoch: tuple[int, int] | None) -> float:
    """The epochs trained at a step, as a fraction.

    Args:
        step: Steps taken.
        steps_per_epoch: 0 if unknown, as for a stream of unknown length; then a part of an epoch counts as half of one.
        last_epoch: The last epoch that has ended by that step, and its last step; ``None`` if none has.
    """
    if steps_per_epoch:
        return step / steps_per_epoch
    epoch, last_step = last_epoch or (0, 0)
    return epoch + (0.5 if step > last_step else 0.0)


def read_trained_epochs(database: RunDatabase, step: int) -> float:
    """The epochs that a run had trained at a step, as a fraction."""
    built = last_event(database, ModelBuilt)
    steps_per_epoch = (built.steps_per_epoch if built else None) or 0
    ended = [] if steps_per_epoch else all_events(database, EpochEnded)
    last = next((event for event in reversed(ended) if event.step <= step), None)
    return _trained_epochs(step, steps_per_epoch, (last.epoch, last.step) if last else None)
