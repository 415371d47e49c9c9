"""Images, texts and histograms in a run: written, listed, read, limited and deleted."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaItem, histogram_of, image_of
from accel_engine.run.media.items import MAX_IMAGE_BYTES, MAX_TEXT_BYTES
from accel_engine.run.store.database import writing
from recorded_run import execute, started

RANDOM = np.random.default_rng(0)

ITEMS: list[MediaItem] = [
    image_of(RANDOM.random((4, 5))),
    image_of(RANDOM.random((4, 5, 3))),
    LoggedImage(np.zeros((1, 1, 1), np.uint8), note="cut"),
    LoggedText("two\nlines, ünïcode \x1b[31m and \udcff"),
    LoggedText("", note="empty"),
    histogram_of(RANDOM.normal(size=100)),
    histogram_of([np.nan]),
    Histogram(np.array([0.0, 1.0, 1.0]), np.array([2.5, 0.0]), not_finite=7, note="of another program"),
]


@pytest.fixture
def directory() -> Path:
    return create(Plan())


def write(directory: Path, *entries: tuple[int, str, MediaItem]) -> None:
    with closing(RunWriter(directory)) as writer:
        for step, name, item in entries:
            writer.write_media(step, 1.0, name, item)


def read(directory: Path, step: int = 1 << 40) -> list[tuple[int, MediaItem] | None]:
    """The newest item of each series."""
    with closing(RunReader(directory)) as reader:
        return [reader.media(series, step) for series in reader.media_list()]


def assert_equal(actual: MediaItem, expected: MediaItem) -> None:
    assert type(actual) is type(expected)
    for name in type(expected).__dataclass_fields__:
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_an_item_is_read_as_it_was_written(directory: Path, item: MediaItem) -> None:
    write(directory, (3, "weights/déjà vu", item))
    ((step, actual),) = read(directory)  # type: ignore[misc]
    assert step == 3
    assert_equal(actual, item)


def test_a_list_has_a_row_per_name_and_kind(directory: Path) -> None:
    write(
        directory,
        *((step, "samples", ITEMS[0]) for step in (5, 1, 9)),
        (2, "samples", ITEMS[3]),
        (7, "a", ITEMS[5]),
        (5, "samples", ITEMS[1]),
    )
    with closing(RunReader(directory)) as reader:
        listed = reader.media_list()
        steps = [reader.media_steps(series) for series in listed]
    rows = [(each.name, each.kind, each.count, each.first_step, each.last_step) for each in listed]
    assert rows == [("a", "histogram", 1, 7, 7), ("samples", "image", 3, 1, 9), ("samples", "text", 1, 2, 2)]
    assert steps == [[7], [1, 5, 9], [2]]
    assert listed[1].last_id == 6, "a replaced item counts as new"


def test_the_newest_item_up_to_a_step_is_read(directory: Path) -> None:
    write(directory, *((step, "t", LoggedText(str(step))) for step in (10, 30, 20)))
    for step, found in ((9, None), (10, 10), (19, 10), (25, 20), (30, 30), (1000, 30)):
        assert read(directory, step) == [None if found is None else (found, LoggedText(str(found)))]


def test_items_are_followed_by_their_ids(directory: Path) -> None:
    write(directory, (5, "a", LoggedText("one")), (3, "b", LoggedText("two")))
    with closing(RunReader(directory)) as reader:
        first = list(reader.media_items())
        assert [(each.step, each.time, each.name, each.item) for each in first] == [
            (5, 1.0, "a", LoggedText("one")),
            (3, 1.0, "b", LoggedText("two")),
        ]
        write(directory, (5, "a", LoggedText("three")))
        assert [each.item for each in reader.media_items(first[-1].id)] == [LoggedText("three")]
        execute(directory, "UPDATE main.media SET body = x'00'")
        with pytest.raises(RunError, match="row 2 of the table media: its body "):
            list(reader.media_items())


def test_listing_ten_thousand_items_reads_no_bodies(directory: Path) -> None:
    with writing(directory) as database:
        for step in range(10_000):
            database.set_media("text", f"name {step % 100}", step, 0.0, "not read", b"not read")
    with closing(RunReader(directory)) as reader:
        statements: list[str] = []
        reader._database._database.set_trace_callback(statements.append)
        listed = reader.media_list()
        steps = [step for series in listed for step in reader.media_steps(series)]
    assert len(steps) == sum(series.count for series in listed) == 10_000
    queries = [statement for statement in statements if "FROM media" in statement]
    assert len(queries) == 1 + 100
    for query in queries:
        ((*_, plan),) = execute(directory, f"EXPLAIN QUERY PLAN {query}")
        assert "USING COVERING INDEX" in plan, "else SQLite reads the rows"


@pytest.mark.parametrize(
    ("step", "name", "item", "message"),
    [
        (
            0,
            "a",
            LoggedImage(RANDOM.integers(0, 255, (1500, 1500, 3), np.uint8)),
            "compressed, more than 4.0 MiB: make it",
        ),
        (0, "a", LoggedImage(np.zeros((5000, 5000, 3), np.uint8)), "more than 64.0 MiB: make it smaller"),
        (0, "a", LoggedText("é" * (MAX_TEXT_BYTES // 2 + 1)), "the text has 1.0 MiB, more than 1.0 MiB: log a part"),
        (0, "", LoggedText("a"), "a name has 1 to 200 bytes"),
        (0, "é" * 101, LoggedText("a"), "a name has 1 to 200 bytes"),
        (0, "\udcff", LoggedText("a"), "surrogates not allowed"),
        (-1, "a", LoggedText("a"), "a step is a whole number from 0"),
        (1 << 63, "a", LoggedText("a"), "a step is a whole number from 0"),
    ],
)
def test_what_is_too_large_is_refused(directory: Path, step: int, name: str, item: MediaItem, message: str) -> None:
    with pytest.raises(RunError, match=f"cannot log .* at step {step}: .*{message}"):
        write(directory, (step, name, item))
    assert read(directory) == []


def test_the_largest_items_are_stored(directory: Path) -> None:
    side = int((MAX_IMAGE_BYTES / 3) ** 0.5) - 10
    image = LoggedImage(RANDOM.integers(0, 255, (side, side, 3), np.uint8))
    write(directory, (0, "image", image), (0, "text", LoggedText("x" * MAX_TEXT_BYTES)))
    assert len(read(directory)) == 2


def test_all_items_of_a_run_have_a_limit(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LoggedText(RANDOM.bytes(500).hex())
    write(directory, (0, "a", text))
    stored = execute(directory, "SELECT length(body) FROM media")[0][0]
    monkeypatch.setattr("accel_engine.run.writing.writer.MAX_MEDIA_BYTES", 2 * stored)
    write(directory, (1, "a", text))
    with closing(RunWriter(directory)) as writer:
        writer.begin(started(5))
        with pytest.raises(RunError, match=r"images, texts and histograms would take more than .* KiB"):
            writer.write_media(2, 1.0, "a", text)
        writer.rewind(0)
        writer.write_media(2, 1.0, "a", text)
    assert execute(directory, "SELECT step FROM media ORDER BY step") == [(0,), (2,)]


def test_items_of_later_steps_are_deleted_when_a_run_continues(directory: Path) -> None:
    write(directory, *((step, "t", LoggedText(str(step))) for step in range(0, 50, 10)))
    with closing(RunWriter(directory)) as writer:
        writer.begin(started(20))
    assert read(directory) == [(20, LoggedText("20"))]


DAMAGED: list[tuple[MediaItem, str, Any]] = [
    (item, f"UPDATE main.media SET {change}", value)
    for item in (ITEMS[0], ITEMS[3], ITEMS[5])
    for change, value in (
        ("body = ?", b"no zlib"),
        ("body = substr(body, 1, ?)", 12),
        ("body = ?", b""),
        ("body = ?", "text"),
        ("head = ?", "{"),
        ("head = ?", "[]"),
        ("head = ?", "{}"),
        ("head = ?", b"\x00"),
        ("head = ?", '{"note": "", "shape": [-1, 3, 3], "length": -1, "bins": -1, "not_finite": 0}'),
        ("head = ?", '{"note": "", "shape": [9e9, 3], "length": "a", "bins": 1.5, "not_finite": 0}'),
        (
            "head = ?",
            '{"note": "", "shape": [4294967296, 65536, 3], "length": 1e30, "bins": 8589934592, "not_finite": 0}',
        ),
    )
]


@pytest.mark.parametrize(("item", "statement", "value"), DAMAGED)
def test_a_damaged_item_is_an_error_that_names_it(
    directory: Path, item: MediaItem, statement: str, value: object
) -> None:
    write(directory, (4, "broken", item))
    execute(directory, statement, value)
    with pytest.raises(RunError, match="row 1 of the table media: "):
        read(directory)


def test_kinds_of_newer_programs_are_ignored_and_other_values_are_damage(directory: Path) -> None:
    write(directory, (4, "a", ITEMS[0]), (4, "b", ITEMS[0]))
    execute(directory, "UPDATE main.media SET kind = 'video' WHERE name = 'a'")
    assert len(read(directory)) == 1
    execute(directory, "UPDATE main.media SET step = 'four' WHERE name = 'b'")
    with pytest.raises(RunError, match="row 'b' of the table media"):
        read(directory)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoggedImage(np.zeros((2, 2, 3))), r"not float64 \[2, 2, 3\]"),
        (lambda: LoggedImage(np.zeros((2, 2, 4), np.uint8)), r"not uint8 \[2, 2, 4\]"),
        (lambda: Histogram(np.zeros(3), np.zeros(3)), "3 counts has 4 edges, not 3"),
        (lambda: Histogram(np.array([1.0, 0.0]), np.zeros(1)), "finite and ascending"),
        (lambda: Histogram(np.array([0.0, np.inf]), np.zeros(1)), "finite and ascending"),
        (lambda: Histogram(np.array([0.0, 1.0]), np.array([-1.0])), "not negative"),
        (lambda: Histogram(np.array([0, 1]), np.array([1])), "float64"),
    ],
)
def test_items_check_their_arrays(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
