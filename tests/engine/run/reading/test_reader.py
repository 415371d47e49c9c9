import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.errors import RunError
from accel_engine.events import Phase, PhaseChanged, Warned
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create
from accel_engine.run.engine.commands import COMMANDS, read_answer
from accel_engine.run.reading.reader import RECENT_CHUNKS
from accel_engine.run.store.database import DATABASE, RunDatabase
from accel_engine.run.store.steps import THROUGHPUT, TIME
from accel_engine.versioned_database import current_user
from recorded_run import execute


def test_nothing_new_is_an_empty_update(reader: RunReader) -> None:
    assert not reader.poll()
    assert not reader.poll()


def test_each_event_is_read_once_and_in_order(writer: RunWriter, reader: RunReader) -> None:
    first = Warned(time=1.0, message="one")
    second = PhaseChanged(time=0.5, phase=Phase.TRAINING)
    writer.write_event(first)
    assert reader.poll().events == (first,)
    writer.write_event(second)
    assert reader.poll().events == (second,)
    assert not reader.poll()


def test_late_reader_gets_everything_at_once(directory: Path, writer: RunWriter) -> None:
    for index in range(5):
        writer.write_event(Warned(time=float(index), message=str(index)))
        writer.write_chunk(index, 0.0, 1.0, {"loss": [float(index)]})
    with closing(RunReader(directory)) as late:
        update = late.poll()
    assert [event.time for event in update.events] == [0, 1, 2, 3, 4]
    assert [chunk.first_step for chunk in update.chunks] == [0, 1, 2, 3, 4]


def test_a_series_that_begins_late_is_read_from_then_on(writer: RunWriter, reader: RunReader) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0.5]})
    assert [sorted(chunk.series) for chunk in reader.poll().chunks] == [["loss"]]
    writer.write_chunk(1, 1.0, 2.0, {"loss": [0.4], "accuracy": [0.9]})
    writer.write_chunk(2, 2.0, 3.0, {"loss": [0.3]})
    assert [sorted(chunk.series) for chunk in reader.poll().chunks] == [["accuracy", "loss"], ["loss"]]


def test_more_chunks_than_are_looked_for_at_first_are_all_read(writer: RunWriter, reader: RunReader) -> None:
    for step in range(3 * RECENT_CHUNKS):
        writer.write_chunk(step, 0.0, 1.0, {"loss": [0.5]})
    assert [chunk.first_step for chunk in reader.poll().chunks] == list(range(3 * RECENT_CHUNKS))
    assert not reader.poll()


def test_many_events_are_read_a_part_at_a_time_and_all_else_after_them(directory: Path, writer: RunWriter) -> None:
    for index in range(5):
        writer.write_event(Warned(time=float(index), message=str(index)))
        writer.write_chunk(index, 0.0, 1.0, {"loss": [float(index)]})
    with closing(RunReader(directory, max_events=2)) as reader:
        updates = [reader.poll() for _ in range(3)]
        assert not reader.poll()
    assert [[event.time for event in update.events] for update in updates] == [[0, 1], [2, 3], [4]]
    assert [update.more for update in updates] == [True, True, False]
    assert [len(update.chunks) for update in updates] == [0, 0, 5]


def test_phases_that_are_over_are_left_out_where_that_is_asked(directory: Path, writer: RunWriter) -> None:
    with closing(RunReader(directory, past_phases=False)) as reader:
        for time in range(0, 6, 2):
            writer.write_event(PhaseChanged(time=float(time), phase=Phase.TRAINING))
            writer.write_event(Warned(time=time + 1.0, message="late"))
        assert [event.time for event in reader.poll().events] == [1.0, 3.0, 4.0, 5.0]
        writer.write_event(PhaseChanged(time=6.0, phase=Phase.PAUSED))
        assert [event.time for event in reader.poll().events] == [6.0]


def test_event_that_only_a_later_program_knows_is_passed_over(
    directory: Path, writer: RunWriter, reader: RunReader
) -> None:
    execute(directory, "INSERT INTO main.event (time, kind, body) VALUES (1.0, 'moon_landed', '{}')")
    writer.write_event(Warned(time=2.0, message="known"))
    assert [event.time for event in reader.poll().events] == [2.0]


def test_of_many_samples_only_the_latest_are_read_where_that_is_asked(directory: Path, writer: RunWriter) -> None:
    samples = [Sample(float(second), "cpu:0", {"utilization": Reading(1.0, "%")}) for second in range(10)]
    writer.write_samples(samples)
    with closing(RunReader(directory, max_samples=3)) as latest, closing(RunReader(directory)) as complete:
        assert [sample.time for sample in latest.poll().samples] == [7, 8, 9]
        assert [sample.time for sample in complete.poll().samples] == list(range(10))
        writer.write_samples([Sample(10.0, "cpu:0")])
        assert [sample.time for sample in latest.poll().samples] == [10]


def test_heartbeat_alone_is_no_news(writer: RunWriter, reader: RunReader) -> None:
    writer.begin()
    reader.poll()
    writer.heartbeat()
    assert not reader.poll()


def test_info_tells_the_plan_and_the_engine(directory: Path, writer: RunWriter, reader: RunReader) -> None:
    waiting = reader.info()
    assert (waiting.id, waiting.pid, waiting.title) == (directory.name, None, "first try")
    assert waiting.plan == Plan(model="cnn", name="first try")
    writer.begin()
    running = reader.info()
    assert running.pid == os.getpid()
    assert running.status is Status.RUNNING


def test_plan_that_no_longer_holds_here_is_told_by_its_values(tmp_path: Path) -> None:
    model = tmp_path / "mine.py"
    model.write_text("def build(): ...\n")
    directory = create(Plan(model=f"{model}:build"))
    model.unlink()
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    assert info.plan is None
    assert info.plan_values["model"] == f"{model}:build"
    assert info.title == f"{model}:build on digits"


def test_run_without_its_plan_has_none(directory: Path, reader: RunReader) -> None:
    execute(directory, "DELETE FROM main.meta WHERE key = 'plan'")
    assert reader.info().plan is None
    assert reader.info().plan_values == {}


def test_file_damaged_while_it_is_read_is_an_error_in_words(directory: Path, writer: RunWriter) -> None:
    for index in range(200):
        writer.write_event(Warned(time=float(index), message="x" * 100))
    writer.close()
    with closing(sqlite3.connect(directory / DATABASE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((directory / DATABASE).read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    (directory / DATABASE).write_bytes(content)
    with pytest.raises(RunError, match="cannot"), closing(RunReader(directory)) as reader:
        reader.poll()


@pytest.mark.parametrize("max_events", [None, 1])
@pytest.mark.parametrize(
    ("table", "row", "values"),
    [
        ("event", {"time": 1.0, "kind": "warned", "body": "{"}, "Expecting"),
        ("event", {"time": "noon", "kind": "warned", "body": "{}"}, "got `str` in time"),
        ("sample", {"time": 1.0, "device": "cpu:0", "readings": "{"}, "Expecting"),
        ("chunk", {"first_step": 0, "count": 1 << 24, "started": 1.0, "ended": 2.0}, "no series has values"),
    ],
)
def test_a_damaged_row_is_an_error_each_time_it_is_read(
    directory: Path, max_events: int | None, table: str, row: dict[str, Any], values: str
) -> None:
    marks = ", ".join("?" * len(row))
    execute(directory, f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())
    said = f"run {directory.name} cannot be read: its run.db is damaged (row 1 of the table {table}: "
    with closing(RunReader(directory, max_events=max_events)) as reader:
        for _ in range(2):
            with pytest.raises(RunError, match=re.escape(said)) as caught:
                reader.poll()
            assert values in str(caught.value)
            assert str(caught.value).endswith(f"). Save what is whole: accel-tui repair {directory.name}")


def test_an_error_of_the_program_is_not_said_to_be_one_of_the_file(
    reader: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: RunDatabase) -> int:
        raise KeyError("a mistake")

    monkeypatch.setattr(RunDatabase, "data_version", fail)
    with pytest.raises(KeyError, match="a mistake"):
        reader.poll()


def test_answer_to_a_command_that_nobody_gave_is_none(directory: Path) -> None:
    assert read_answer(directory, 99) is None


def test_every_command_says_what_it_does() -> None:
    every = {"validation_every", "checkpoint_every"}
    assert {"stop", "stop_now", "pause", "resume", "checkpoint", "learning_rate", "validate", "profile", *every} == set(
        COMMANDS
    )
    assert all(COMMANDS.values())


def test_who_needs_no_user_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("no such uid")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert current_user().startswith(f"{os.getuid()}@")


def test_what_is_passed_over_is_not_read(directory: Path, writer: RunWriter, reader: RunReader) -> None:
    reader.skip()
    assert not reader.poll()
    writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0]})
    writer.write_event(Warned(time=1.0, message="old"))
    writer.write_samples([Sample(1.0, "cpu:0", {})])
    reader.skip()
    assert not reader.poll()
    writer.write_chunk(1, 1.0, 2.0, {"loss": [2.0]})
    writer.write_event(Warned(time=2.0, message="new"))
    update = reader.poll()
    assert [chunk.first_step for chunk in update.chunks] == [1]
    assert [event.time for event in update.events] == [2.0]


def test_a_column_that_no_engine_could_have_made_is_no_series(directory: Path, writer: RunWriter) -> None:
    for first in range(0, 3 * (1 << 12), 1 << 10):
        writer.write_chunk(first, 0.0, 1.0, {"loss": [1.0] * (1 << 10)})
    with closing(RunDatabase(directory)) as connection:
        connection.execute('ALTER TABLE main.chunk ADD COLUMN "a\x1b[2J" BLOB')
        connection.execute('UPDATE main.chunk SET "a\x1b[2J" = loss')
        connection.execute(
            "INSERT INTO main.summary SELECT level, first_step, 'a\x1b[2J', buckets FROM summary WHERE series = 'loss'"
        )
    with closing(RunReader(directory)) as reader:
        assert {name for chunk in reader.poll().chunks for name in chunk.series} == {"loss"}
        assert reader.step_range(0, 3 << 12, 1 << 10).series.keys() == {"loss", THROUGHPUT, TIME}
        assert reader.step_range(0, 3 << 12, 1).series.keys() == {"loss", THROUGHPUT, TIME}
