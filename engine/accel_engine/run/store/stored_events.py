"""Reads the rows of ``event`` as events; damaged ones are left out and counted."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from accel_engine.events import KINDS, Event, from_stored
from accel_engine.run.store.database import Database
from accel_engine.run.store.table_connection import Row
from accel_engine.stored_values import number, parse_object

E = TypeVar("E", bound=Event)


def decoded_events(database: Database, rows: Iterable[Row]) -> Iterator[tuple[int, Event]]:
    """Decode rows of id, kind, time and body; kinds that this program does not know are ignored."""
    return database.decoded("event", (row for row in rows if row[1] in KINDS), from_stored)


def last_event(database: Database, *kinds: type[E]) -> E | None:
    """The last event of any of these kinds; ``None`` if there is none."""
    names = (kind.kind() for kind in kinds)
    rows = database.latest_events(*names)
    return next((event for _, event in decoded_events(database, rows) if isinstance(event, kinds)), None)


def last_of_each(database: Database, *kinds: type[E]) -> list[E]:
    """The last event of each of these kinds, oldest first."""
    rows = database.last_of_each(*(kind.kind() for kind in kinds))
    return [event for _, event in decoded_events(database, rows) if isinstance(event, kinds)]


def all_values(database: Database, kind: type[Event], metric: str) -> list[float | None]:
    """A metric of all events of a kind, oldest first; ``None`` where it is missing. Nothing else of them is checked."""

    def value(body: str) -> float | None:
        found = parse_object(body)["metrics"].get(metric)
        return None if found is None else number(found)

    rows = ((event, body) for event, _, _, body in database.events(kinds=[kind.kind()]))
    return [found for _, found in database.decoded("event", rows, value)]


def all_events(database: Database, kind: type[E]) -> list[E]:
    """All events of a kind, oldest first."""
    rows = database.events(kinds=[kind.kind()])
    return [event for _, event in decoded_events(database, rows) if isinstance(event, kind)]
