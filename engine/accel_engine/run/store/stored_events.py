"""Reads the rows of ``event`` as events."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from accel_engine.events import KINDS, Event, from_stored
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
    return next(
        (event for _, event in decoded_events(database, [row] if row else []) if isinstance(event, kinds)), None
    )
