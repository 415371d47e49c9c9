"""Reads the rows of ``event`` as events; damaged ones are left out and counted."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from accel_engine.events import KINDS, Event, from_stored
from accel_engine.run.store.database import Database
from accel_engine.run.store.table_connection import Row

E = TypeVar("E", bound=Event)


def decoded_events(database: Database, rows: Iterable[Row]) -> Iterator[tuple[int, Event]]:
    """Decode rows of id, kind, time and body; kinds that this program does not know are ignored."""
    return database.decoded("event", (row for row in rows if row[1] in KINDS), from_stored)


def last_event(database: Database, *kinds: type[E]) -> E | None:
    """The last event of any of these kinds; ``None`` if there is none."""
    names = (kind.kind() for kind in kinds)
    rows = database.latest_events(*names)
    return next((event for _, event in decoded_events(database, rows) if isinstance(event, kinds)), None)
