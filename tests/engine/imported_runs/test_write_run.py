"""What an import writes is an ended run."""

import math
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine import imported_runs
from accel_engine.errors import DataError, RunError, UsageError
from accel_engine.events import RunEnded, RunStarted, Validated, Warned
from accel_engine.imported_runs import find, import_run, imported_before, write_run
from accel_engine.imported_runs.source_run import Epoch, ImportedMetric, SourceRun
from accel_engine.imported_runs.write_run import remove_abandoned
from accel_engine.run import RunReader, Status, list_runs, runs_directory
from accel_engine.run.directory.lock import WriterLock, is_locked
from accel_engine.run.runs.listing import summarize
from accel_engine.run.runs.worker_runs import run_to_continue
from accel_engine.run.store.database import reading, writing
from accel_engine.run.store.meta import ImportSource
from engine.imported_runs import reading as written

SOURCE = ImportSource("/data/logs", "TensorBoard", "abc")

KILLED = """
import os, signal, sys
from pathlib import Path
from accel_engine.imported_runs import write_run
from accel_engine.imported_runs import find, import_run
from accel_engine.run import runs_directory
from accel_engine.run.directory.lock import is_locked

def killed(*_):
    (unfinished,) = runs_directory().glob(".import-*")
    print(is_locked(unfinished), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

write_run._end = killed
import_run(find(Path(sys.argv[1]))[0])
"""


def points(steps: list[int], values: list[float], times: list[float] | None = None) -> ImportedMetric:
    at = [1000.0 + step for step in steps] if times is None else times
    return ImportedMetric(np.array(steps, np.int64), np.array(at, np.float64), np.array(values, np.float64))


def write(run: SourceRun) -> Path:
    return runs_directory() / write_run.write_imported(run, SOURCE, 5000.0)


def test_an_ended_run() -> None:
    run = SourceRun(
        name="my run", began=999.5, host="node1", config={"lr": 0.1, "sizes": [1, 2]}, note="a\nnote", tags=("paper",)
    )
    run.series = {"accuracy": points([0, 1, 2], [0.1, 0.2, 0.3]), "loss": points([0, 1, 2], [3.0, 2.0, 1.0])}
    run.validations = {"loss": points([2, 3], [0.75, 0.5], [1001.5, 1002.5])}
    run.epochs = [Epoch(1, 3, 1002.25, {"loss": 2.0})]
    run.notes = ["something"]
    directory = write(run)
    summary = summarize(directory)
    info = summary.info
    assert info is not None
    assert (info.status, info.created, info.host, info.pid, info.plan) == (Status.FINISHED, 999.5, "node1", None, None)
    assert (info.source, info.has_engine, info.title) == (SOURCE, False, "my run")
    assert info.plan_values == {"name": "my run", "config": {"lr": 0.1, "sizes": "[1, 2]"}}
    assert (info.annotations.note, info.annotations.tags) == ("a note", ("paper",))
    assert (summary.steps, summary.seconds, summary.best) == (3, 3.0, 0.5)
    assert summary.metrics == {"loss": 2.0, "validation_loss": 0.5}
    assert list(written.series(directory)) == ["loss", "accuracy"]
    assert written.series(directory)["loss"] == [(0, 3.0), (1, 2.0), (2, 1.0)]
    assert written.times(directory) == {0: 1000.0, 1: 1001.0, 2: 1002.0}
    assert written.validations(directory) == {2: {"loss": 0.75}, 3: {"loss": 0.5}}
    assert written.epochs(directory) == [(1, 3, {"loss": 2.0})]
    events = written.events(directory)
    assert [event.kind() for event in events] == [
        "run_started", "warned", "validated", "epoch_ended", "validated", "run_ended",
    ]  # fmt: skip
    assert [event.time for event in events] == [999.5, 999.5, 1001.5, 1002.25, 1002.5, 1002.5]
    assert [event.message for event in events if isinstance(event, Warned)] == ["something"]
    (ended,) = (event for event in events if isinstance(event, RunEnded))
    assert (ended.steps, ended.epochs, ended.seconds, ended.steps_per_second) == (3, 1, 3.0, 1.0)


def test_hyperparameters_with_the_names_of_plan_fields_are_no_plan() -> None:
    run = SourceRun(name="x", config={"min_delta": "1e-4", "monitor": "acc", "monitor_mode": "max", "model": "big"})
    run.series = {"loss": points([0, 1], [1.0, 2.0])}
    run.validations = {"loss": points([0, 1], [0.5, 0.25])}
    summary = summarize(write(run))
    assert (summary.monitor, summary.best) == ("validation_loss", 0.25)
    assert summary.info is not None
    assert [summary.info.setting(name) for name in ("model", "monitor", "data")] == ["big", "acc", None]


def test_the_hyperparameters_that_an_earlier_version_wrote_as_plan_fields_are_read_as_settings() -> None:
    run = SourceRun(name="x", series={"loss": points([0, 1], [1.0, 2.0])}, epochs=[Epoch(1, 2, 1001.0, {"loss": 1.5})])
    directory = write(run)
    with writing(directory) as database:
        database.set_meta(plan='{"min_delta": "1e-4", "config": "a", "name": "x"}')
    summary = summarize(directory)
    assert (summary.monitor, summary.best) == ("loss", 1.5)
    assert summary.info is not None
    assert summary.info.plan_values == {"name": "x", "config": {"min_delta": "1e-4", "config": "a"}}


def test_without_epochs_the_last_values_are_the_result() -> None:
    run = SourceRun(name="x", series={"loss": points([0, 1], [1.0, 2.0])}, results={"score": 0.5})
    summary = summarize(write(run))
    assert summary.metrics == {"loss": 2.0, "score": 0.5}
    assert summary.best == 1.0


def test_sparse_steps_stay_sparse_and_their_speed_is_that_since_the_last() -> None:
    run = SourceRun(name="x", began=999.0)
    run.series = {"loss": points([0, 50, 100], [1, 2, 3], [1000, 1010, 1030]), "rate": points([50], [0.5], [1009])}
    directory = write(run)
    assert written.series(directory) == {"loss": [(0, 1), (50, 2), (100, 3)], "rate": [(50, 0.5)]}
    with closing(RunReader(directory)) as reader:
        (batch,) = reader.steps(0, 101)
    assert batch.steps.tolist() == [0, 50, 100]
    assert batch.times.tolist() == [1000, 1010, 1030]
    assert batch.steps_per_second.tolist() == [1.0, 5.0, 2.5]


def test_consecutive_steps_are_grouped() -> None:
    steps = [*range(10_000), *range(20_000, 30_000)]
    run = SourceRun(name="x", series={"loss": points(steps, steps)})
    directory = write(run)
    with reading(directory) as database:
        assert len(list(database.chunk_places())) == 2 * 2000
    found = written.series(directory)["loss"]
    assert found == [(step, float(step)) for step in steps]
    assert written.times(directory)[25_003] == pytest.approx(26_003)


def test_without_times_all_steps_have_the_time_of_the_file() -> None:
    run = SourceRun(name="x", series={"loss": points([0, 1], [1, 2], [math.nan, math.nan])})
    run.validations = {"loss": points([2], [1], [math.nan])}
    directory = write(run)
    assert set(written.times(directory).values()) == {5000.0}
    assert {event.time for event in written.events(directory)} == {5000.0}
    assert "it has no times" in run.notes[0]


def test_a_run_of_validations_only() -> None:
    directory = write(SourceRun(name="x", validations={"loss": points([4, 8], [2, 1])}))
    assert written.validations(directory) == {4: {"loss": 2.0}, 8: {"loss": 1.0}}
    (started,) = written.events(directory, RunStarted)
    assert started.time == 1004.0


def test_high_steps_are_numbered() -> None:
    run = SourceRun(name="x", series={"loss": points([10, 10**12], [1, 2], [1000, 1001])})
    run.validations = {"loss": points([11], [3])}
    directory = write(run)
    assert written.series(directory)["loss"] == [(0, 1), (1, 2)]
    assert written.validations(directory) == {1: {"loss": 3.0}}
    assert run.notes == ["the steps reach 1,000,000,000,000: the steps with values are numbered from 0 instead"]


@pytest.mark.parametrize("steps", [[0, 30_000_000], [5_000_000, 5_000_001]])
def test_few_steps_with_a_wide_gap_are_numbered(steps: list[int]) -> None:
    run = SourceRun(name="x", series={"loss": points(steps, [1, 2])})
    run.validations = {"loss": points([steps[1] + 1], [3])}
    run.epochs = [Epoch(1, steps[1] + 1, 1000.0, {"loss": 1.5})]
    directory = write(run)
    assert written.series(directory)["loss"] == [(0, 1), (1, 2)]
    assert written.validations(directory) == {2: {"loss": 3.0}}
    assert written.epochs(directory) == [(1, 2, {"loss": 1.5})]
    assert run.notes == [f"the steps reach {steps[1]:,}: the steps with values are numbered from 0 instead"]


@pytest.mark.parametrize("steps", [[999_999, 1_999_998], [*range(10_600), 1_055_000]])
def test_other_steps_stay(steps: list[int]) -> None:
    run = SourceRun(name="x", series={"loss": points(steps, [1] * len(steps))})
    directory = write(run)
    assert [step for step, _ in written.series(directory)["loss"]] == steps
    assert run.notes == []


def test_a_format_without_times_needs_no_note() -> None:
    run = SourceRun(name="x", series={"loss": points([0], [1], [math.nan])}, times_expected=False)
    assert set(written.times(write(run)).values()) == {5000.0}
    assert run.notes == []


def test_too_many_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_run, "MAX_SERIES", 2)
    run = SourceRun(name="x", series={name: points([0], [1]) for name in "abcd"})
    assert list(written.series(write(run))) == ["a", "b"]
    assert run.notes == ["only 2 series are imported; left out: c, d"]


def test_names_are_series_names() -> None:
    run = SourceRun(name="x", series={name: points([0], [1]) for name in ("Acc@1", "acc_1", "time", "Loss")})
    run.validations = {"Acc@1": points([1], [2])}
    directory = write(run)
    assert list(written.series(directory)) == ["loss", "acc_1_2", "acc_1", "metric_time"]
    assert written.validations(directory) == {1: {"acc_1_2": 2.0}}
    assert run.notes == ["the metric Acc@1 is recorded as acc_1_2: the name acc_1 is taken"]


def test_nothing_is_left_of_an_import_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        assert list_runs() == []  # while it is written, too
        raise KeyboardInterrupt

    monkeypatch.setattr(write_run, "_end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(SourceRun(name="x", series={"loss": points([0], [1])}))
    assert list(runs_directory().iterdir()) == []


def test_it_cannot_be_continued() -> None:
    directory = write(SourceRun(name="x", series={"loss": points([0], [1])}))
    with pytest.raises(RunError, match=r"was imported from /data/logs and cannot be continued"):
        run_to_continue(directory, {})


def test_the_same_contents_are_imported_once(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("step,loss\n0,1\n")
    (source,) = find(file)
    first, _ = import_run(source)
    with pytest.raises(RunError, match=f"is already imported as {first}; to import it again, add --again"):
        import_run(source)
    second, _ = import_run(source, again=True)
    file.write_text("step,loss\n0,1\n1,2\n")
    third, _ = import_run(source)
    assert len({first, second, third}) == 3


def test_the_runs_are_listed_once_for_many_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"step,loss\n0,{number}\n")
    sources = [source for number in range(3) for source in find(tmp_path / f"{number}.csv")]
    first, _ = import_run(sources[0])
    before = imported_before()
    assert [*before.values()] == [first]
    monkeypatch.setattr(imported_runs, "list_runs", pytest.fail)
    second, _ = import_run(sources[1], before=before)
    import_run(sources[2], before=before)
    for source, run_id in zip(sources, (first, second), strict=False):
        with pytest.raises(RunError, match=f"is already imported as {run_id}"):
            import_run(source, before=before)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "missing does not exist"),
        (
            ".",
            "nothing to import in .*: it has no TensorBoard .* and no W&B offline runs .*; name its CSV files",
        ),
        ("notes.txt", "cannot import .*notes.txt: give TensorBoard event files"),
    ],
)
def test_paths_without_a_run(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "a.csv").touch()
    with pytest.raises(UsageError, match=said):
        find(tmp_path / name)


def test_a_source_without_values(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("step,word\n0,hello\n")
    with pytest.raises(
        DataError, match=r"a\.csv has no values to import; columns that are not numbers are left out: word"
    ):
        import_run(find(file)[0])


@pytest.mark.parametrize(
    ("numbers", "completed"),
    [
        ([0, 0, 1, 1, 2, 2], {2: 1, 4: 2, 6: 3}),
        ([1, 1, 2, 2, 3, 3], {2: 1, 4: 2, 6: 3}),
        ([0.5, 1, 1.5, 2, 2.5, 2.75], {2: 1, 4: 2, 6: 2}),  # how many are completed
        ([0, 0, 1, 1, 1, 2], {2: 1, 4: 1, 6: 3}),  # the last one is short, and ends with a validation
    ],
)
def test_validations_keep_the_epoch_that_is_logged_as_a_metric(numbers: list[float], completed: dict[int, int]) -> None:
    run = SourceRun(name="x")
    steps = list(range(6))
    run.series = {"loss": points(steps, [6, 5, 4, 3, 2, 1]), "trainer/epoch": points(steps, numbers)}
    run.validations = {"loss": points([2, 4, 6], [3, 2, 1])}
    directory = write(run)
    assert {event.step: event.epoch for event in written.events(directory, Validated)} == completed
    assert [number for number, *_ in written.epochs(directory)] == list(range(1, max(completed.values()) + 1))
    assert list(written.series(directory)) == ["loss"]


@pytest.mark.parametrize("numbers", [[0, 2, 1], [0, -1, 0], [math.nan, 0, 1]])
def test_other_numbers_are_a_series(numbers: list[float]) -> None:
    directory = write(
        SourceRun(name="x", series={"loss": points([0, 1, 2], [3, 2, 1]), "epoch": points([0, 1, 2], numbers)})
    )
    assert list(written.series(directory)) == ["loss", "metric_epoch"]
    assert written.epochs(directory) == []


@pytest.fixture
def unfinished() -> Path:
    """The directory of an import that began two hours ago."""
    directory = runs_directory() / ".import-abc"
    directory.mkdir(parents=True)
    (directory / "file").touch()
    age(directory)
    return directory


def age(directory: Path) -> None:
    os.utime(directory, (time.time() - 7200,) * 2)


def test_the_next_import_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("step,loss\n0,1\n")
    killed = subprocess.run([sys.executable, "-c", KILLED, file], capture_output=True, text=True)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, "True\n", "")
    (left,) = runs_directory().iterdir()
    assert not is_locked(left)
    age(left)
    run_id, _ = import_run(find(file)[0])
    assert [path.name for path in runs_directory().iterdir()] == [run_id]
    assert not (runs_directory() / run_id / "run.lock").exists()


def test_what_nobody_writes_is_removed(unfinished: Path) -> None:
    (unfinished.parent / "abcd-run").mkdir()
    age(unfinished.parent / "abcd-run")
    remove_abandoned()
    assert [path.name for path in runs_directory().iterdir()] == ["abcd-run"]


def test_what_another_import_writes_stays(unfinished: Path) -> None:
    with WriterLock(unfinished):
        age(unfinished)
        remove_abandoned()
    assert unfinished.exists()


def test_what_has_just_begun_stays(unfinished: Path) -> None:
    os.utime(unfinished)
    remove_abandoned()
    assert unfinished.exists()
