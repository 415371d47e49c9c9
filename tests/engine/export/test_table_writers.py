import csv
import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.errors import UsageError
from accel_engine.events import EpochEnded, Outcome, PartEnded, PartStarted, RunStarted, Validated
from accel_engine.export.run_tables import TABLE_READERS
from accel_engine.export.table_writers import METADATA, write_csv, write_parquet, write_run_json
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.run.media import LoggedText
from accel_engine.run.store import steps
from example_events import model_built

LOSS = np.random.default_rng(0).random(50, np.float32)
LOSS[7:10] = np.nan, np.inf, -np.inf


@pytest.fixture
def writer() -> Iterator[RunWriter]:
    """A run of 50 steps, 10 at a time; what else there is of it, a test adds."""
    with closing(RunWriter(create(Plan(name="first try", epochs=3)))) as writer:
        writer.begin()
        for step in range(0, 50, 10):
            # One series only becomes known on the way.
            more = {"accuracy": np.full(10, 0.1)} if step >= 20 else {}
            writer.write_chunk(step, 1000 + step / 10, 1001 + step / 10, {"loss": LOSS[step : step + 10], **more})
        yield writer


@pytest.fixture
def run(writer: RunWriter) -> Iterator[RunReader]:
    with closing(RunReader(writer.directory)) as run:
        yield run


def rows(run: RunReader, table: str) -> list[dict[str, str]]:
    stream = io.StringIO()
    count = write_csv(run, table, stream)
    found = list(csv.DictReader(io.StringIO(stream.getvalue())))
    assert len(found) == count
    return found


def document(run: RunReader) -> Any:
    stream = io.StringIO()
    assert write_run_json(run, stream) == 50
    return json.loads(stream.getvalue(), parse_constant=pytest.fail)


def add(writer: RunWriter) -> None:
    """Two validations, one of them of steps that were then forgotten, and a look at a device."""
    for step, first in ((20, 0), (50, 20), (50, 50)):
        metrics = {"loss": step + first, "top_5": 0.5} if first else {"loss": 0.25}
        writer.write_event(Validated(time=1000.0 + step, epoch=1, step=step, metrics=metrics, seconds=0.5))
        if first == 20:
            started = {"run": "r", "name": "", "plan": {}, "pid": 1, "host": "h", "versions": {}}
            writer.write_event(RunStarted(time=1060.0, first_step=20, **started))
    readings = {"utilization": Reading(43.0, "%"), "power": Reading.missing("not supported, they say", "W")}
    writer.write_samples([Sample(1001.5, "gpu:0", readings)])


def test_every_step_is_a_row_of_exact_values(run: RunReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BATCH_STEPS", 7)
    found = rows(run, "steps")
    assert list(found[0]) == ["step", "time", "loss", "accuracy", "steps_per_second"]
    assert [int(row["step"]) for row in found] == list(range(50))
    losses = np.array([row["loss"] for row in found], np.float32)
    np.testing.assert_array_equal(losses, LOSS)
    assert [row["accuracy"] for row in found] == ["nan"] * 20 + ["0.1"] * 30
    assert float(found[49]["time"]) == pytest.approx(1005)
    assert float(found[49]["steps_per_second"]) == pytest.approx(10)


def test_steps_that_are_not_there_have_no_row(writer: RunWriter, run: RunReader) -> None:
    writer.write_chunk(80, 2000, 2001, {"loss": [1.0, 2.0]})
    assert [row["step"] for row in rows(run, "steps")[48:]] == ["48", "49", "80", "81"]


def test_validations_that_count_are_rows(writer: RunWriter, run: RunReader) -> None:
    add(writer)
    assert rows(run, "validation") == [
        {"step": "20", "epoch": "1", "time": "1020.0", "loss": "0.25", "top_5": "", "seconds": "0.5"},
        {"step": "50", "epoch": "1", "time": "1050.0", "loss": "100", "top_5": "0.5", "seconds": "0.5"},
    ]


def test_readings_and_events_are_rows(writer: RunWriter, run: RunReader) -> None:
    add(writer)
    assert rows(run, "samples") == [
        {"time": "1001.5", "device": "gpu:0", "reading": "utilization", "value": "43", "unit": "%", "reason": ""},
        {
            "time": "1001.5",
            "device": "gpu:0",
            "reading": "power",
            "value": "",
            "unit": "W",
            "reason": "not supported, they say",
        },
    ]
    events = rows(run, "events")
    assert [row["event"] for row in events] == ["validated", "validated", "run_started", "validated"]
    assert json.loads(events[0]["details"])["loss"] == 0.25


def add_parts(writer: RunWriter) -> None:
    """Two parts of a script, of 20 and 30 steps, and a validation in each, after them and, in the second, before."""
    for number, first, last in ((1, 0, 20), (2, 20, 50)):
        writer.write_event(PartStarted(time=1000.0, part=number, name="fit", step=first, epoch=number - 1))
        writer.write_event(model_built(epochs=number, steps_per_epoch=last - first))
        for step in (last,) if number == 1 else (first, last):
            metrics = {"loss": 0.25, "part": 3.0}
            writer.write_event(Validated(time=1100.0, epoch=number, step=step, metrics=metrics, seconds=0.5))
        ended = PartEnded(
            time=1200.0, part=number, name="fit", outcome=Outcome.FINISHED, step=last, epoch=number, seconds=1.0
        )
        writer.write_event(ended)


def test_rows_of_a_script_have_their_part(writer: RunWriter, run: RunReader, tmp_path: Path) -> None:
    add_parts(writer)
    found = rows(run, "steps")
    assert list(found[0])[:4] == ["step", "epoch", "part", "time"]
    assert [row["part"] for row in found] == ["1"] * 20 + ["2"] * 30
    validations = rows(run, "validation")
    assert list(validations[0]) == ["step", "epoch", "part", "time", "loss", "metric_part", "seconds"]
    assert [(row["step"], row["part"]) for row in validations] == [("20", "1"), ("20", "2"), ("50", "2")]
    assert [row["metric_part"] for row in validations] == ["3.0"] * 3
    whole = document(run)
    assert whole["steps"]["part"] == [1] * 20 + [2] * 30
    assert [point["part"] for point in whole["validation"]] == [1, 2, 2]
    for table in ("steps", "validation"):
        write_parquet(run, table, tmp_path / table)
        written = parquet.read_table(tmp_path / table)
        assert str(written.schema.field("part").type) == "int64"
        assert written["part"].to_pylist() == [int(row["part"]) for row in rows(run, table)]


def begin_part(writer: RunWriter, number: int, step: int, epoch: int) -> None:
    writer.write_event(PartStarted(time=1000.0, part=number, name="fit", step=step, epoch=epoch))


def test_epochs_are_counted_from_the_start_of_their_part(writer: RunWriter, run: RunReader) -> None:
    for number, first, epoch in ((1, 0, 0), (2, 20, 2)):
        begin_part(writer, number, first, epoch)
        writer.write_event(model_built(epochs=3, steps_per_epoch=10 * number))
    assert [row["epoch"] for row in rows(run, "steps")] == ["1"] * 10 + ["2"] * 10 + ["3"] * 20 + ["4"] * 10


@pytest.mark.parametrize("epochs", [0, 3], ids=["a loop", "a fit"])
def test_the_recorded_ends_of_epochs_count(writer: RunWriter, run: RunReader, epochs: int) -> None:
    writer.write_event(model_built(epochs=epochs, steps_per_epoch=5 if epochs else 50))
    metrics = {"loss": 0.5}
    for epoch, step in ((1, 10), (2, 40)):
        writer.write_event(Validated(time=1.0, epoch=epoch - 1, step=step, metrics=metrics, seconds=0.5))
        writer.write_event(EpochEnded(time=1.0, epoch=epoch, step=step, metrics=metrics, seconds=1.0))
    rest = ["3"] * 5 + ["4"] * 5 if epochs else ["3"] * 10
    assert [row["epoch"] for row in rows(run, "steps")] == ["1"] * 10 + ["2"] * 30 + rest
    assert [row["epoch"] for row in rows(run, "validation")] == ["1", "2"]


def test_an_epoch_that_a_part_did_not_end_is_its_own(writer: RunWriter, run: RunReader) -> None:
    for number, first, epoch, ends in ((1, 0, 0, (10,)), (2, 20, 1, (30, 40))):
        begin_part(writer, number, first, epoch)
        for each, step in enumerate(ends, start=epoch + 1):
            writer.write_event(EpochEnded(time=1.0, epoch=each, step=step, metrics={}, seconds=1.0))
    found = [row["epoch"] for row in rows(run, "steps")]
    assert found == ["1"] * 10 + ["2"] * 10 + ["2"] * 10 + ["3"] * 10 + ["4"] * 10


@pytest.mark.parametrize("unknown", [1, 2])
def test_without_the_length_of_every_epoch_there_are_none(writer: RunWriter, run: RunReader, unknown: int) -> None:
    for number in (1, 2):
        begin_part(writer, number, 20 * (number - 1), 0)
        if number != unknown:
            writer.write_event(model_built(epochs=1, steps_per_epoch=10))
    assert list(rows(run, "steps")[0])[:3] == ["step", "part", "time"]


def test_a_validation_between_two_parts_has_none(writer: RunWriter, run: RunReader) -> None:
    add_parts(writer)
    writer.write_event(Validated(time=1300.0, epoch=2, step=50, metrics={"loss": 0.5}, seconds=0.5))
    assert [row["part"] for row in rows(run, "validation")] == ["1", "2", "2", ""]
    assert document(run)["validation"][-1]["part"] is None


@pytest.mark.parametrize("name", ["step", "time", "seconds"])
def test_a_metric_with_the_name_of_another_column_is_renamed(writer: RunWriter, run: RunReader, name: str) -> None:
    writer.write_event(Validated(time=1100.0, epoch=1, step=50, metrics={name: 7.0}, seconds=0.5))
    (row,) = rows(run, "validation")
    assert (row["step"], row["time"], row["seconds"], row[f"metric_{name}"]) == ("50", "1100.0", "0.5", "7.0")


@pytest.mark.parametrize("table", TABLE_READERS)
def test_a_run_that_never_began_is_a_header(table: str, tmp_path: Path) -> None:
    with closing(RunReader(create(Plan()))) as run:
        assert rows(run, table) == []
        assert write_parquet(run, table, tmp_path / "file") == 0


def test_json_has_all_there_is(writer: RunWriter, run: RunReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BATCH_STEPS", 7)
    add(writer)
    found = document(run)
    assert (found["run"], found["name"], found["plan"]["epochs"]) == (writer.directory.name, "first try", 3)
    assert found["steps"]["step"] == list(range(50))
    assert write_run_json(run, io.StringIO()) == 50
    losses = np.array([np.nan if loss is None else loss for loss in found["steps"]["loss"]], np.float32)
    np.testing.assert_array_equal(losses, np.where(np.isfinite(LOSS), LOSS, np.nan))
    assert [point["loss"] for point in found["validation"]] == [0.25, 100]
    assert len(found["events"]) == 4
    (sample,) = found["samples"]
    assert sample["readings"]["power"] == {"value": None, "unit": "W", "reason": "not supported, they say"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reading_that_is_not_finite_is_null_in_json(writer: RunWriter, run: RunReader, value: float) -> None:
    writer.write_samples([Sample(1001.5, "gpu:0", {"power": Reading(value, "W"), "load": Reading(0.5)})])

    (sample,) = document(run)["samples"]

    power = {"value": None, "unit": "W", "reason": "the device reported no finite value"}
    assert sample["readings"] == {"power": power, "load": {"value": 0.5, "unit": ""}}


@pytest.mark.parametrize("table", TABLE_READERS)
def test_parquet_has_the_rows_of_csv_and_the_plan(
    writer: RunWriter, run: RunReader, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "BATCH_STEPS", 7)
    add(writer)
    path = tmp_path / "run.parquet"
    count = write_parquet(run, table, path)
    found = parquet.read_table(path)
    assert found.num_rows == count == len(rows(run, table)) > 0
    assert found.column_names == list(rows(run, table)[0])
    about = json.loads(found.schema.metadata[METADATA])
    assert (about["run"], about["plan"]["epochs"], len(about["validation"])) == (writer.directory.name, 3, 2)
    if table == "steps":
        np.testing.assert_array_equal(found["loss"].to_numpy(), LOSS)


def test_parquet_without_pyarrow_says_what_to_install(
    run: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'accel-tui\[parquet\]'"):
        write_parquet(run, "steps", tmp_path / "file")


def test_json_has_names_and_steps_of_what_was_logged(writer: RunWriter, run: RunReader) -> None:
    assert document(run)["media"] == []
    for step in (10, 20):
        writer.write_media(step, 1000.0, "words", LoggedText("of any length"))
    assert document(run)["media"] == [{"kind": "text", "name": "words", "steps": [10, 20]}]
