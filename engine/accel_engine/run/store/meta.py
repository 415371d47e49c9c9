"""The rows of ``meta``, each decoded and checked by its key; damaged ones are left out and counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from accel_engine.plan import SPECS
from accel_engine.plan.field_needs import without_ignored
from accel_engine.run.store.database import Database
from accel_engine.run.store.whole_rows import MAX_TIME
from accel_engine.stored_values import check_of, make, number, parse, parse_object, shallow


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The files of another tool that a run was imported from.

    Attributes:
        path: The folder or file.
        format: ``TensorBoard``, ``W&B`` or ``CSV``.
        fingerprint: Checksum of the contents.
    """

    path: str
    format: str
    fingerprint: str = ""


_FIELDS = dict.fromkeys(("model", "data", "name"), check_of(str | None))

_check_value = check_of(str | float | bool | tuple[str, ...] | None)  # other versions may have others than this one

_EARLIER = {"last_batch": "drop"}
"""What versions without these plan fields did, where it differs from the default."""


@lru_cache(maxsize=64)
def stored_plan(text: str) -> Mapping[str, Any]:
    """The fields of a stored plan. Cached, as followers read it every second.

    Raises:
        ValueError: It is no JSON object, or a field has a value of another kind.
    """
    values: dict[str, Any] = shallow(parse_object(text, constants=True))
    for name, value in values.items():
        if name in SPECS:
            _FIELDS.get(name, _check_value)(value)
    return values


@lru_cache(maxsize=64)
def effective_plan(text: str) -> Mapping[str, Any]:
    """A stored plan's fields that have an effect; those that the run's version did not have say what it did."""
    return without_ignored({**_EARLIER, **stored_plan(text)})


def read_meta(database: Database) -> dict[str, Any]:
    """Read all whole values by key; a plan is its text, tags are a tuple, a source is an :class:`ImportSource`."""
    return dict(database.decoded("meta", database.meta(), _decoded))


def _decoded(key: str, value: Any) -> Any:
    return _DECODERS[key](value) if key in _DECODERS else value


def _plan(value: Any) -> str:
    stored_plan(value)
    return str(value)


def _time(value: Any) -> float:
    if not 0 <= number(value) <= MAX_TIME:
        raise ValueError("it is no time")
    return float(value)


def _any_time(value: Any) -> float:
    """A time of another clock, such as seconds since boot, or the difference of two."""
    if not abs(number(value)) <= MAX_TIME:
        raise ValueError("it is no time")
    return float(value)


def _pid(value: Any) -> int:
    found = check_of(int)(value)
    if found >= 1 << 32:
        raise ValueError("no process has this id")
    return int(found)


def _bytes(value: Any) -> int:
    if (found := check_of(int)(value)) < 0:
        raise ValueError("it is no number of bytes")
    return int(found)


def _text(value: Any) -> str:
    """A text; one that looks like a number may have been stored as one."""
    return str(check_of(str)(str(value) if type(value) is int else value))


def _flag(value: Any) -> bool:
    return bool(check_of(int)(value))


def _trial(value: Any) -> int:
    if (found := check_of(int)(value)) < 0:
        raise ValueError("it is no number of a trial")
    return int(found)


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "plan": _plan,
    "created": _time,
    "script": _text,
    "bench": _text,
    "launched": _flag,
    "queued": _flag,
    "study": _text,
    "trial": _trial,
    "source": lambda value: make(ImportSource, parse_object(value)),
    "pending": _any_time,
    "pid": _pid,
    "process": _text,
    "machine": _text,
    "host": _text,
    "clock_offset": _any_time,
    "heartbeat": _any_time,
    "written": _any_time,
    "kills": _text,
    "memory_loss": _text,
    "memory": _text,
    "log_start": _bytes,
    "name": _text,
    "note": _text,
    "tags": lambda value: check_of(tuple[str, ...])(parse(value)),
}
