"""Reads the rows of ``event`` as events; damaged ones are left out and counted."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from accel_engine.events import KINDS, EpochEnded, Event, ModelBuilt, from_stored
from accel_engine.json_values import Number, convert, parse_object
from accel_engine.run.store.database import Database
from accel_engine.run.store.table_connection import Row

E = TypeVar("E", bound=Event)

_METRIC: Any = Number | None


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

    def metric_of(body: str) -> float | None:
        value: float | None = convert(parse_object(body)["metrics"].get(metric), _METRIC)
        return value

    rows = ((event, body) for event, _, _, body in database.events(kinds=[kind.kind()]))
    return [found for _, found in database.decoded("event", rows, metric_of)]


def all_events(database: Database, kind: type[E]) -> list[E]:
    """All events of a kind, oldest first."""
    rows = database.events(kinds=[kind.kind()])
    return [event for _, event in decoded_events(database, rows) if isinstance(event, kind)]


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


def read_trained_epochs(database: Database, step: int) -> float:
    """The epochs that a run had trained at a step, as a fraction."""
    built = last_event(database, ModelBuilt)
    steps_per_epoch = (built.steps_per_epoch if built else None) or 0
    ended = [] if steps_per_epoch else all_events(database, EpochEnded)
    last = next((event for event in reversed(ended) if event.step <= step), None)
    return _trained_epochs(step, steps_per_epoch, (last.epoch, last.step) if last else None)
