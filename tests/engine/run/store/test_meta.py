"""The values that a run has of itself."""

from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.meta import read_meta
from recorded_run import put


@pytest.mark.parametrize(
    ("key", "damaged"),
    [
        ("plan", '{"epochs": {"two": 2}}'),
        ("plan", '{"model": 3}'),
        ("plan", "[]"),
        ("pid", 1 << 32),
        ("pid", "1"),
        ("created", -1.0),
        ("created", 1e12),
        ("clock_offset", 1e12),
        ("script", 1.5),
        ("launched", "yes"),
        ("source", "{}"),
        ("tags", "[1]"),
    ],
)
def test_a_damaged_value_is_an_error_that_names_it(directory: Path, key: str, damaged: object) -> None:
    put(directory, **{key: damaged})
    with closing(RunDatabase(directory)) as database, pytest.raises(RunError, match=f"row '{key}' of the table meta: "):
        read_meta(database)


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("plan", '{"epochs": 2, "of a later version": {}}', '{"epochs": 2, "of a later version": {}}'),
        ("pid", (1 << 32) - 1, (1 << 32) - 1),
        ("created", 0, 0.0),
        ("clock_offset", -5.5, -5.5),
        ("script", 7, "7"),
        ("launched", 1, True),
        ("tags", '["one"]', ("one",)),
    ],
)
def test_a_whole_value_is_read(directory: Path, key: str, value: object, found: object) -> None:
    put(directory, **{key: value})
    with closing(RunDatabase(directory)) as database:
        assert read_meta(database)[key] == found
