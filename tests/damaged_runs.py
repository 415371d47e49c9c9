"""A run with rows of every table, made without TensorFlow, and ways to damage its file."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine import events
from accel_engine.devices.device_types import CountedItem, Reading, Sample
from accel_engine.events import KINDS, Outcome, Phase
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.diagnostics import (
    ClassificationReport,
    DataFingerprint,
    DataProfile,
    InputSpec,
    Layer,
    LayerTable,
    SamplePrediction,
    Scores,
    ValidationReport,
)
from accel_engine.run.diagnostics.views import Image
from accel_engine.run.media import Histogram, LoggedImage, LoggedText
from accel_engine.run.store.annotations import rename_run, set_note, set_tags
from accel_engine.run.store.database import DATABASE
from example_events import model_built
from recorded_run import put, started

STEPS = 5000

COLUMNS = {
    "meta": ("key", "value"),
    "event": ("id", "time", "kind", "body"),
    "chunk": ("id", "first_step", "count", "started", "ended", "loss", "accuracy", "learning_rate"),
    "sample": ("id", "time", "device", "readings"),
    "command": ("id", "time", "who", "name", "argument", "answered", "obeyed", "answer"),
    "summary": ("level", "first_step", "series", "buckets"),
    "diagnostics": ("name", "time", "step", "head", "body"),
    "media": ("id", "kind", "name", "step", "time", "head", "body"),
}
"""The columns of each table."""

JSON_COLUMNS = (
    *(("event", "body"), ("sample", "readings"), ("diagnostics", "head")),
    *(("media", "head"), ("meta", "value")),
)
"""The columns with JSON objects."""

EVENT_FIELDS = {kind: tuple(item.name for item in fields(event)) for kind, event in KINDS.items()}


def record(name: str = "whole") -> Path:
    """Record a run that has finished."""
    directory = create(Plan(name=name))
    with closing(RunWriter(directory)) as writer:
        writer.begin(started(time=1.7e9, run=directory.name))
        for event in _events():
            writer.write_event(event)
        rng = np.random.default_rng(0)
        for first in range(0, STEPS, 250):
            series = {name: rng.random(250) for name in ("loss", "accuracy", "learning_rate")}
            writer.write_chunk(first, 1.7e9 + first, 1.7e9 + first + 249, series)
        writer.write_samples([_sample(at) for at in range(40)])
        for item in _diagnostics():
            writer.write_diagnostics(item, 500)
        for step in (0, 100):
            writer.write_media(step, 1.7e9, "picture", LoggedImage(np.zeros((4, 4, 3), np.uint8)))
            writer.write_media(step, 1.7e9, "words", LoggedText("a text"))
            writer.write_media(step, 1.7e9, "weights", Histogram(np.arange(4.0), np.ones(3)))
        writer.write_event(
            events.RunEnded(
                time=1.7e9 + STEPS,
                outcome=Outcome.FINISHED,
                steps=STEPS,
                epochs=STEPS // 100,
                seconds=1.0 * STEPS,
                metrics={"loss": 0.5},
            )
        )
    rename_run(directory, f"{name} run")
    set_note(directory, "a note")
    set_tags(directory, ["one", "two"])
    put(directory, process=None, pid=None)  # else a row that becomes `pending` would wait for this process
    with closing(sqlite3.connect(directory / DATABASE)) as database, database:
        database.execute("INSERT INTO command (time, who, name) VALUES (1.7e9, 'ann@box', 'pause')")
    return directory


def copied(directory: Path, to: Path) -> Path:
    """A copy of a run that nobody writes."""
    shutil.copytree(directory, to)
    return to


def set_value(directory: Path, table: str, column: str, value: object, row: int | None = None) -> None:
    """Set the value of a column in one row, or in all.

    Args:
        directory: The run.
        table: The table.
        column: The column.
        value: The value; a text that begins with ``=`` is an expression of SQL, with ``@`` for the column.
        row: The number of the row, from 0; all by default.
    """
    is_expression = isinstance(value, str) and value.startswith("=")
    expression, values = (str(value)[1:].replace("@", column), ()) if is_expression else ("?", (value,))
    rowid = "key" if table == "meta" else "rowid"
    where = "" if row is None else f" WHERE {rowid} = (SELECT {rowid} FROM {table} LIMIT 1 OFFSET {row})"
    change(directory, f"UPDATE OR IGNORE {table} SET {column} = {expression}{where}", *values)


def set_field(directory: Path, table: str, column: str, row: int, name: str, value: object) -> None:
    """Set a field of an object in JSON; ``...`` deletes it."""
    rowid = "key" if table == "meta" else "rowid"
    select = f"SELECT {rowid}, {column} FROM {table} LIMIT 1 OFFSET ?"
    with (
        suppress(sqlite3.Error, ValueError, TypeError, LookupError, AttributeError),
        closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as database,
    ):
        found = database.execute(select, (row,)).fetchone()
        values: Any = json.loads(found[1])
        target = values[0] if isinstance(values, list) else values
        if value is ...:
            del target[name]
        else:
            target[name] = value
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {rowid} = ?", (json.dumps(values), found[0]))


def change(directory: Path, statement: str, *values: object) -> None:
    """Run a statement, unless SQLite refuses it."""
    with closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as database:
        with suppress(
            sqlite3.Error, OverflowError, UnicodeDecodeError
        ):  # the last, of a message that quotes damaged bytes
            database.execute(statement, values)
        with suppress(sqlite3.Error):
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def overwrite(directory: Path, share: float, data: bytes) -> None:
    """Overwrite bytes of the file, at a share of its length."""
    path = directory / DATABASE
    contents = bytearray(path.read_bytes())
    at = int(share * len(contents))
    contents[at : at + len(data)] = data[: len(contents) - at]
    path.write_bytes(contents)


def overwrite_root(directory: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    with closing(sqlite3.connect(directory / DATABASE)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
        (pages,) = database.execute("PRAGMA page_count").fetchone()
    overwrite(directory, (page - 1) / pages, b"\xff" * size)


def truncate(directory: Path, share: float) -> None:
    """Keep a share of the file."""
    path = directory / DATABASE
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def _events() -> list[events.Event]:
    at = 1.7e9
    return [
        events.PhaseChanged(time=at, phase=Phase.BUILDING),
        events.DevicesFound(time=at, devices=(events.TensorFlowDevice("CPU:0", "cpu", "CPU", "cpu:0"),), strategy="x"),
        model_built(time=at + 1, monitor="validation_accuracy"),
        events.WorkersMet(time=at + 1, workers=(events.Worker("worker 0", "a:1", "h", "k7m2"),), reduction="ring"),
        events.PartStarted(time=at + 1, part=1, name="fit", step=0, epoch=0),
        events.PhaseChanged(time=at + 1, phase=Phase.TRAINING),
        events.XlaTried(time=at + 2, step=50, xla=True, plain=10.0, compiled=20.0, remembered=False),
        events.MicroBatchesTried(
            time=at + 2, step=60, micro_batches=2, tried=2, whole=10.0, split=20.0, remembered=False
        ),
        events.WorkCounted(time=at + 2, flops=1e9, peak=1e12, source="CPU"),
        events.LearningRateChanged(time=at + 2, step=70, learning_rate=0.01),
        *(
            each
            for epoch in range(1, 6)
            for each in (
                events.EpochEnded(
                    time=at + 100 * epoch, epoch=epoch, step=100 * epoch, metrics={"loss": 1 / epoch}, seconds=90.0
                ),
                events.Validated(
                    time=at + 100 * epoch,
                    epoch=epoch,
                    step=100 * epoch,
                    metrics={"loss": 1 / epoch, "accuracy": 0.5},
                    seconds=1.0,
                    waited=0,
                    baseline={"accuracy": 0.1},
                    baseline_name="most frequent class: b",
                ),
                events.CheckpointSaved(time=at + 100 * epoch, epoch=epoch, step=100 * epoch, path="c", seconds=1.0),
            )
        ),
        events.CommandAnswered(time=at + 600, command="pause", who="ann", obeyed=True, answer="paused", step=500),
        events.TimeMeasured(time=at + 600, first_step=0, step=500, seconds=600.0, spent={"steps": 500.0}),
        events.Recovered(
            time=at + 600, trouble="not a number", step=500, failed_step=510, reason="r", action="a", changes={"b": 2}
        ),
        events.PlanChanged(time=at + 600, step=500, changes={"b": 3}, before={"b": 2}, reason="r"),
        events.Warned(time=at + 600, message="a warning"),
        events.ThreadsChosen(time=at + 600, threads=1, default=2, source="earlier runs", rate=128.0, default_rate=99.0),
        events.PartEnded(time=at + 700, part=1, name="fit", outcome=Outcome.FINISHED, step=500, epoch=5, seconds=700.0),
    ]


def _sample(at: int) -> Sample:
    items = (CountedItem("python", "42", 1 << 20),)
    readings = {
        "utilization": Reading(50.0 + at % 7, "%"),
        "memory_used": Reading(2.0**30 * (1 + at), "B"),
        "memory_total": Reading(2.0**36, "B"),
        "power": Reading.missing("this CPU does not report it", "W"),
        "processes": Reading.counted(items),
        "core_0": Reading(20.0, "%"),
        "core_1": Reading(80.0, "%"),
    }
    return Sample(1.7e9 + at, "cpu:0", readings)


def _diagnostics() -> list[Any]:
    scores = Scores(np.ones((1, 200), np.int64), np.ones((1, 200), np.int64))
    worst = SamplePrediction(
        row=3,
        loss=2.0,
        input=Image(np.zeros((4, 4, 1), np.uint8)),
        label=1,
        predicted=0,
        confidence=0.9,
        true_class_probability=0.1,
    )
    report = ClassificationReport(
        examples=4, names=("cat", "dog"), counts=np.eye(2, dtype=np.int64), confidence=scores, worst=(worst,)
    )
    layers = (Layer("dense", "Dense", 0, (10,), 650, 650, 1e6),)
    return [
        InputSpec((8, 8, 1), ("cat", "dog"), 1 / 255, 0.0, 255.0, integers=True),
        DataFingerprint({"classes": "abc"}),
        DataProfile(10, classes=(5, 5)),
        LayerTable(layers, 1e6),
        ValidationReport((report,)),
    ]
