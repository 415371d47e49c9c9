"""What a bench measured is stored as runs, by batch size."""

import csv
import io
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import RunError
from accel_engine.events import RunEnded, Warned
from accel_engine.export.table_writers import write_csv, write_run_json
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.protocol.model_reference import check_checkpoint
from accel_engine.run import RunReader, Status, list_runs, runs_directory
from accel_engine.run.damage.repair import repair_run
from accel_engine.run.runs.listing import summarize
from accel_engine.run.runs.worker_runs import run_to_continue
from accel_engine.tensorboard.run_log import RunLog
from accel_engine.trained.bench_runs import BenchRuns
from engine.imported_runs import reading as written
from tensorboard_loader import scalars


def candidate(batch_size: int, p99: float, throughput: float, **changes: Any) -> Candidate:
    found = {name: Percentile(p99 * share, p99 / 4, None) for name, share in (("p50", 0.5), ("p90", 0.75), ("p99", 1))}
    described = {"model": "k3fp", "format": "keras", "device": "cpu:0", "xla": False, "precision": "float32"}
    measured = {"scenario": "multi-stream", "percentiles": found, "throughput": throughput, "stable": True}
    figures = {"first_seconds": 0.25, "memory": 3 << 20}
    return Candidate(**{**described, **measured, **figures, "batch_size": batch_size, **changes})


SMALL, LARGE = candidate(1, 0.5, 1000.0), candidate(8, 2.0, 4000.0)
FAILED = candidate(16, 1, 0.0, percentiles={}, problem="out of memory")


def save(*candidates: Candidate, **options: Any) -> list[Path]:
    runs = BenchRuns(BenchOptions(**options))
    for each in candidates:
        runs.add(each)
    return [runs_directory() / run for run in runs.save()]


def test_a_setup_is_a_run_by_rising_batch_size() -> None:
    (directory,) = save(LARGE, SMALL, FAILED, target_latency=1.0, seconds=2.0)
    summary = summarize(directory)
    info = summary.info
    assert info is not None
    assert (info.kind, info.bench, info.has_engine, info.status) == ("bench", "multi-stream", False, Status.FINISHED)
    assert (info.x_name, info.x_series, info.monitor) == ("batch size", "batch_size", "throughput")
    assert info.plan_values == {
        "model": "k3fp",
        "name": "k3fp on cpu:0, float32",
        "format": "keras",
        "device": "cpu:0",
        "precision": "float32",
        "xla": "off",
        "scenario": "multi-stream",
        "target_latency": 1.0,
        "seconds": 2.0,
    }
    assert directory.name[4:] == "-bench-k3fp-cpu-0-float32"
    series = written.series(directory)
    assert series["batch_size"] == [(0, 1.0), (1, 8.0)]
    assert series["throughput"] == [(0, 1000.0), (1, 4000.0)]
    assert series["p99"] == [(0, 0.5), (1, 2.0)]
    assert series["memory"] == [(0, 3 << 20), (1, 3 << 20)]
    assert "energy" not in series
    warned = [event.message for event in written.events(directory) if isinstance(event, Warned)]
    assert warned == ["batch 16: out of memory"]


def test_its_duration_is_that_of_its_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = BenchRuns(BenchOptions())
    for ended, each in ((1012.0, replace(SMALL, began=1010.0)), (1015.0, replace(LARGE, began=1012.5))):
        monkeypatch.setattr("accel_engine.trained.bench_runs.clock.now", lambda ended=ended: ended)
        runs.add(each)
    (run,) = runs.save()
    summary = summarize(runs_directory() / run)
    assert summary.info is not None
    assert (summary.info.created, summary.seconds) == (1010.0, 5.0)


def test_its_results_are_those_of_the_best_batch_size_within_the_target() -> None:
    within, any_latency, none = (save(SMALL, LARGE, target_latency=target)[0] for target in (1.0, None, 0.1))
    for directory, batch_size, throughput in ((within, 1, 1000.0), (any_latency, 8, 4000.0), (none, 1, 1000.0)):
        summary = summarize(directory)
        assert summary.metrics is not None
        assert (summary.metrics["batch_size"], summary.best, summary.monitor) == (batch_size, throughput, "throughput")
        assert summary.metrics["p99_low"] == summary.metrics["p99"] / 4
        assert "p99_high" not in summary.metrics
    ends = [event for each in (within, none) for event in written.events(each) if isinstance(event, RunEnded)]
    assert [end.reason for end in ends] == ["", "no batch size is within the target latency"]


def test_each_setup_and_each_model_of_the_same_name_has_its_own() -> None:
    compiled = candidate(1, 0.5, 2000.0, xla=True)
    runs = save(SMALL, LARGE, compiled, compiled)
    assert [summary.info and summary.info.name for summary in map(summarize, runs)] == [
        "k3fp on cpu:0, float32",
        "k3fp on cpu:0 with XLA, float32",
        "k3fp on cpu:0 with XLA, float32",
    ]
    assert len(list_runs()) == 3


def test_a_setup_of_which_nothing_was_measured_is_not_saved() -> None:
    assert save(FAILED) == []
    assert not list_runs()


def test_nothing_is_saved_twice() -> None:
    runs = BenchRuns(BenchOptions())
    runs.add(SMALL)
    assert len(runs.save()) == 1
    assert runs.save() == ()


def test_tables_have_a_row_by_batch_size(tmp_path: Path) -> None:
    (directory,) = save(SMALL, candidate(8, 2.0, 4000.0, percentiles={}))
    stream, whole = io.StringIO(newline=""), io.StringIO()
    with closing(RunReader(directory)) as reader:
        assert write_csv(reader, "steps", stream) == 2
        write_run_json(reader, whole)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    assert [(row["batch_size"], row["throughput"]) for row in rows] == [("1", "1000.0"), ("8", "4000.0")]
    assert not {"step", "epoch", "steps_per_second"}.intersection(rows[0])
    assert math.isnan(float(rows[1]["p99"]))
    assert '"kind": "bench"' in whole.getvalue()
    assert '"batch_size": [1,8]' in whole.getvalue()
    with closing(RunReader(directory)) as reader, closing(RunLog(reader, tmp_path / "logs")) as log:
        log.extend()
    found = scalars(tmp_path / "logs" / "train")
    assert found["throughput"] == [(1, 1000.0), (8, 4000.0)]
    assert not {"batch_size", "steps_per_second"}.intersection(found)


def test_it_cannot_be_continued_and_has_no_checkpoints() -> None:
    (directory,) = save(SMALL)
    with pytest.raises(RunError, match="measured by accel-tui bench: there is nothing to continue"):
        run_to_continue(directory)
    with pytest.raises(RunError, match="was measured by accel-tui bench and has no checkpoints"):
        check_checkpoint(directory)


def test_a_damaged_batch_size_costs_its_row(tmp_path: Path) -> None:
    (directory,) = save(SMALL, LARGE)
    with closing(sqlite3.connect(directory / "run.db")) as database, database:
        database.execute("UPDATE chunk SET batch_size = NULL WHERE first_step = 0")
    stream = io.StringIO(newline="")
    with closing(RunReader(directory)) as reader:
        write_csv(reader, "steps", stream)
    assert [row["batch_size"] for row in csv.DictReader(io.StringIO(stream.getvalue()))] == ["8"]


def test_a_repaired_one_is_still_a_bench() -> None:
    (directory,) = save(SMALL, LARGE)
    with closing(sqlite3.connect(directory / "run.db")) as database, database:
        database.execute("UPDATE chunk SET count = -1 WHERE first_step = 0")
    info = summarize(repair_run(directory).directory).info
    assert info is not None
    assert (info.kind, info.bench) == ("bench", "multi-stream")
