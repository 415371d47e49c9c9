"""Which rows of ``run.db`` are whole: their columns have the types, and are within the limits, that engines write.

A file may be damaged, or a program with a mistake may have written it. Queries read the tables of the file
through subqueries with these conditions, so that no query meets a value that it cannot use, and none takes memory in
proportion to a number that only claims to be one. What JSON and bytes in a row mean is checked where they are decoded:
see :meth:`accel_engine.run.store.database.Database.decoded`.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache

from accel_engine.errors import RunError

MAX_STEP = 1 << 32
"""More steps than a run can take."""

MAX_CHUNK = 1 << 24
"""More steps than a chunk can have."""

MAX_TIME = 253_000_000_000
"""Later than any time of a run, in seconds since the Unix epoch: the calendars of programs end in the year 9999."""

MAX_NAME = 1 << 10
"""More characters than the name of a device, a series or a kind can have."""

MAX_TEXT = 1 << 24
"""More characters than the text of a row can have."""

_TERMS = 40  # SQLite limits the depth of an expression to 1000, and a run may have as many series


def check_times(*times: float) -> None:
    """Check times before they are written.

    Raises:
        RunError: A run cannot have one of them.
    """
    for time in times:
        if not 0 <= time <= MAX_TIME:
            raise RunError(f"a run has times from 0 to {MAX_TIME:,} seconds since the Unix epoch, not {time:,}")


def _number(column: str, limit: int | str, least: int = 0) -> str:
    # The unary plus keeps SQLite from choosing an index for a condition that nearly every row meets.
    return f"typeof({column}) = 'integer' AND +{column} BETWEEN {least} AND {limit}"


def _time(column: str) -> str:
    return f"typeof({column}) IN ('integer', 'real') AND +{column} BETWEEN 0 AND {MAX_TIME}"


def _text(column: str, limit: int = MAX_TEXT) -> str:
    return f"typeof({column}) = 'text' AND length({column}) <= {limit}"


def _name(column: str) -> str:
    return _text(column, MAX_NAME)


def _or_null(column: str, condition: str) -> str:
    return f"({column} IS NULL OR {condition})"


def _bytes(column: str) -> str:
    return f"typeof({column}) = 'blob'"


_CONDITIONS: dict[str, tuple[str, ...]] = {
    "meta": ("typeof(key) = 'text'",),
    "event": ("id > 0", _time("time"), _name("kind"), _text("body")),
    "chunk": (
        "id > 0",
        _number("count", MAX_CHUNK, 1),
        _number("first_step", f"{MAX_STEP} - count"),
        _time("started"),
        _time("ended"),
    ),
    "sample": ("id > 0", _time("time"), _name("device"), _text("readings")),
    "command": (
        "id > 0",
        _time("time"),
        _text("who"),
        _text("name"),
        _or_null("argument", "typeof(argument) IN ('integer', 'real')"),
        _text("reason"),
        _text("purpose"),
        _or_null("answered", f"{_time('answered')} AND {_number('obeyed', 1)} AND {_text('answer')}"),
    ),
    "summary": (
        _number("level", 3),
        _number("first_step", MAX_STEP),
        "first_step % (1 << (12 + 4 * level)) = 0",
        _name("series"),
        f"{_bytes('buckets')} AND length(buckets) = 64 * 20",
    ),
    "inside": (_name("name"), _time("time"), _number("step", MAX_STEP), _text("head"), _bytes("body")),
    # Only columns of the index: listing what was logged reads no row.
    "media": ("id > 0", _name("kind"), _name("name"), _number("step", 1 << 62)),
}

TABLES = tuple(_CONDITIONS)
"""The tables of a run."""


def condition(table: str, series: Collection[str] = ()) -> str:
    """The condition, in SQL, that the whole rows of a table meet.

    Args:
        table: One of :data:`TABLES`.
        series: The series of ``chunk``: it has a value per step, or is ``NULL``, and at least one is not.
    """
    terms = list(_CONDITIONS[table])
    if table == "chunk":
        names = [f'"{name}"' for name in series]
        terms += [_or_null(name, f"({_bytes(name)} AND length({name}) = 4 * count)") for name in names]
        terms.append(f"NOT ({_all(f'{name} IS NULL' for name in names)})")
    return _all(terms)


@lru_cache(maxsize=256)
def source(table: str, series: tuple[str, ...]) -> str:
    """A subquery, in SQL, of the whole rows of a table.

    Args:
        table: One of :data:`TABLES`.
        series: The series of ``chunk``.
    """
    return f"(SELECT * FROM main.{table} WHERE {condition(table, series)})"


def _all(terms: Iterable[str]) -> str:
    """All of many terms, in groups."""
    found = list(terms) or ["1"]
    groups = [" AND ".join(f"({term})" for term in found[at : at + _TERMS]) for at in range(0, len(found), _TERMS)]
    return " AND ".join(f"({group})" for group in groups)
