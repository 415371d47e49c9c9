import math
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import UsageError
from accel_engine.events import EpochEnded, Outcome, PartStarted, RunEnded, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.run import SCHEMA_VERSION, RunList, RunSummary, RunWriter, Status, create, find_run, list_runs
from accel_engine.run.runs import listing
from accel_engine.run.runs.creation import create_recorded
from accel_engine.run.store.annotations import rename_run
from accel_engine.run.store.database import DATABASE, RunDatabase
from recorded_run import execute, started


def created(directory: Path, at: float) -> Path:
    execute(directory, "UPDATE main.meta SET value = ? WHERE key = 'created'", at)
    return directory


@pytest.fixture
def three() -> tuple[Path, Path, Path]:
    """Three runs, oldest first; the last two have the same name."""
    return (
        created(create(Plan()), 1.0),
        created(create(Plan(name="same")), 2.0),
        created(create(Plan(name="same")), 3.0),
    )


def test_no_runs_is_an_empty_list() -> None:
    assert list_runs() == []


def test_newest_run_comes_first(three: tuple[Path, Path, Path]) -> None:
    assert [run.directory for run in list_runs()] == list(reversed(three))


def test_no_run_is_found_without_a_name(three: tuple[Path, Path, Path]) -> None:
    with pytest.raises(UsageError, match="name a run"):
        find_run("")


def test_before_an_epoch_has_ended_each_series_has_its_last_value(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    assert list_runs()[0].metrics == {}
    writer.write_chunk(0, 0.0, 1.0, {"loss": [9.0, 9.0], "accuracy": [0.0, 0.0]})
    writer.write_chunk(2, 1.0, 2.0, {"loss": [1.0, 2.0, math.nan], "accuracy": [math.nan] * 3})
    before = list_runs()[0]
    assert (before.metrics, before.of_epoch) == ({"loss": 2.0, "accuracy": 0.0}, False)
    writer.write_event(EpochEnded(time=3.0, epoch=1, step=5, metrics={"loss": 4.0}, seconds=1.0))
    after = list_runs()[0]
    assert (after.metrics, after.of_epoch) == ({"loss": 4.0}, True)


def test_the_seconds_of_an_engine_are_those_that_it_has_measured(writer: RunWriter) -> None:
    writer.write_event(started(time=1.0))
    writer.write_event(RunEnded(time=99.0, outcome=Outcome.FINISHED, steps=0, epochs=0, seconds=5.0))
    assert list_runs()[0].seconds == 5.0


def test_summary_tells_steps_time_and_latest_metrics(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    writer.write_event(started(time=40.0))
    writer.write_event(Warned(time=41.0, message="an engine that died"))
    writer.write_event(started(time=100.0))
    writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0, 2.0]})
    writer.write_chunk(2, 0.0, 1.0, {"loss": [3.0]})
    for epoch, loss in ((1, 2.0), (2, 1.0)):
        writer.write_event(EpochEnded(time=101.0, epoch=epoch, step=3, metrics={"loss": loss}, seconds=1.0))
        writer.write_event(Validated(time=102.0, epoch=epoch, step=3, metrics={"accuracy": loss / 4}, seconds=1.0))
    (run,) = list_runs()
    assert (run.id, run.steps, run.seconds, run.status) == (directory.name, 3, 1.0 + 2.0, Status.RUNNING)
    assert run.metrics == {"loss": 1.0, "validation_accuracy": 0.25}
    writer.write_event(
        RunEnded(
            time=103.0,
            outcome=Outcome.FINISHED,
            steps=3,
            epochs=2,
            seconds=3.0,
            steps_per_second=1.0,
            metrics={"loss": 0.5, "validation_accuracy": 0.75},
        )
    )
    (run,) = list_runs()
    assert run.status is Status.FINISHED
    assert run.metrics == {"loss": 0.5, "validation_accuracy": 0.75}
    writer.write_event(started(time=50.0))  # the clock was set back
    writer.write_event(Warned(time=20.0, message="and once more"))
    assert list_runs()[0].seconds == 1.0 + 3.0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE main.meta SET value = '{' WHERE key = 'plan'",
        "UPDATE main.meta SET value = 'yesterday' WHERE key = 'created'",
        "INSERT INTO main.event (time, kind, body) VALUES (1.0, 'validated', '{}')",
        "INSERT INTO main.event (time, kind, body) VALUES (1.0, 'validated', '{')",
    ],
)
def test_a_damaged_run_says_so_and_hides_no_other(three: tuple[Path, Path, Path], damage: str) -> None:
    execute(three[1], damage)
    runs = {run.directory: run for run in list_runs()}
    assert set(runs) == set(three)
    assert "run.db is damaged (row " in runs[three[1]].problem
    assert runs[three[1]].problem.endswith(f"accel-tui repair {three[1].name}")
    assert runs[three[1]].status is None
    assert not runs[three[0]].problem


def test_a_run_without_a_table_says_so_and_hides_no_other(three: tuple[Path, Path, Path]) -> None:
    execute(three[1], "DROP TABLE main.event")
    runs = {run.directory: run for run in list_runs()}
    assert set(runs) == set(three)
    assert runs[three[1]].problem
    assert runs[three[1]].status is None
    assert not runs[three[0]].problem


def test_file_that_is_no_database_says_so(three: tuple[Path, Path, Path]) -> None:
    (three[0] / DATABASE).write_bytes(b"no database " * 100)
    (summary,) = [run for run in list_runs() if run.directory == three[0]]
    assert "cannot be read" in summary.problem
    assert summary == RunSummary(three[0].name, three[0], None, 0, epochs=0.0, problem=summary.problem)


def test_newer_run_is_listed_with_what_to_do(three: tuple[Path, Path, Path]) -> None:
    execute(three[0], "UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    assert [run.problem for run in list_runs() if run.problem] == [
        f"run {three[0].name} was created by a newer accel-tui (format 99; this version reads up to {SCHEMA_VERSION}): "
        "upgrade accel-tui to open it"
    ]


def test_run_is_found_by_id_prefix_name_path_or_as_the_last(three: tuple[Path, Path, Path]) -> None:
    oldest, _, newest = three
    assert find_run("last") == newest
    assert find_run(oldest.name) == oldest
    assert find_run(oldest.name[:4]) == oldest
    assert find_run(str(oldest)) == oldest
    assert find_run("same") == newest, "the newest of a name"


def test_a_run_that_cannot_be_read_is_the_last_only_if_all_are(three: tuple[Path, Path, Path]) -> None:
    oldest, _, newest = three
    (newest / DATABASE).write_bytes(b"no database" * 99)
    assert find_run("last") == three[1]
    for run in three:
        (run / DATABASE).write_bytes(b"no database" * 99)
    (oldest / DATABASE).touch()
    assert find_run("last") == list_runs()[0].directory


@pytest.mark.parametrize("content", [b"", b"no database" * 99])
def test_a_run_that_cannot_be_read_names_the_command_that_repairs_it(
    three: tuple[Path, Path, Path], content: bytes
) -> None:
    (three[0] / DATABASE).write_bytes(content)
    (problem,) = (run.problem for run in list_runs() if run.problem)
    assert "its run.db is damaged (" in problem
    assert problem.endswith(f"accel-tui repair {three[0].name}")


def test_prefix_of_several_runs_is_refused_with_their_ids(home: Path, three: tuple[Path, Path, Path]) -> None:
    for code in ("0022", "0033"):
        three[0].parent.joinpath(code).mkdir()
        (three[0].parent / code / DATABASE).write_bytes((three[0] / DATABASE).read_bytes())
    with pytest.raises(UsageError, match="is ambiguous: 00") as caught:
        find_run("00")
    assert "0022" in str(caught.value)
    assert "0033" in str(caught.value)
    assert find_run("002").name == "0022"


def test_run_that_is_not_there_is_refused_with_the_nearest(three: tuple[Path, Path, Path]) -> None:
    with pytest.raises(UsageError, match=f"did you mean {three[0].name}"):
        find_run(three[0].name[:-1] + "z")
    with pytest.raises(UsageError, match="no run '"):
        find_run("????")


def test_looking_for_a_run_where_there_are_none_says_where_it_looked(home: Path) -> None:
    with pytest.raises(UsageError, match="no runs yet in") as caught:
        find_run("last")
    assert str(home) in str(caught.value)


def aged(directory: Path) -> Path:
    """Have a run's files look as if they were written long ago, as most were."""
    for path in directory.iterdir():
        os.utime(path, (1000.0, 1000.0))
    return directory


def test_only_what_has_changed_is_read_again(three: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    summarized = listing.summarize

    def summarize(directory: Path) -> RunSummary:
        read.append(directory)
        return summarized(directory)

    monkeypatch.setattr(listing, "summarize", summarize)
    monkeypatch.setattr(listing, "_SETTLED", 600 * listing._SETTLED)
    for directory in three:
        execute(directory, "UPDATE main.meta SET value = 0 WHERE key = 'pending'")
        aged(directory)
    runs = RunList()
    assert runs.refresh()
    assert sorted(read) == sorted(three)
    assert {run.status for run in runs.runs} == {Status.LOST}
    assert runs.refresh()
    assert len(read) == 3
    rename_run(three[0], "changed")
    assert runs.refresh()
    assert read[3:] == [three[0]]
    assert runs.runs[-1].info.name == "changed"  # type: ignore[union-attr]
    assert runs.refresh()
    assert read[4:] == [three[0]], "it was written only a moment ago"
    aged(three[0])
    with closing(RunDatabase(three[0])) as database:
        database.set_meta(name="changed again")
        os.utime(three[0] / DATABASE, (1000.0, 1000.0))
        assert runs.refresh()
        assert runs.refresh()
    assert len(read) == 7, "its log was written only a moment ago"


def test_a_live_run_is_read_at_every_look(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    runs = RunList()
    runs.refresh()
    aged(directory)
    runs.refresh()
    assert runs.runs[0].status is Status.RUNNING
    writer.close()
    aged(directory)
    runs.refresh()
    assert runs.runs[0].status is Status.LOST


def test_the_newest_files_are_read_first_and_what_is_gone_is_left_out(three: tuple[Path, Path, Path]) -> None:
    aged(three[0])
    aged(three[2])
    runs = RunList()
    assert not runs.refresh(1)
    assert [run.directory for run in runs.runs] == [three[1]]
    assert runs.refresh(5)
    assert [run.directory for run in runs.runs] == list(reversed(three))
    shutil.rmtree(three[1])
    assert runs.refresh()
    assert [run.directory for run in runs.runs] == [three[2], three[0]]


def summary_of(writer: RunWriter, *metrics: dict[str, float]) -> RunSummary:
    """The summary after an epoch with each of these means of validation."""
    for epoch, values in enumerate(metrics, start=1):
        writer.write_event(EpochEnded(time=1.0, epoch=epoch, step=epoch, metrics={"loss": 0.1 * epoch}, seconds=1.0))
        if values:
            writer.write_event(Validated(time=1.0, epoch=epoch, step=epoch, metrics=values, seconds=1.0))
    return list_runs()[0]


@pytest.mark.parametrize(
    ("metrics", "monitor", "best"),
    [
        ([{"loss": 3.0, "accuracy": 0.4}, {"loss": 2.0, "accuracy": 0.9}], "validation_accuracy", 0.9),
        ([{"loss": 3.0, "accuracy": 0.9}, {"loss": 2.0, "accuracy": math.nan}], "validation_accuracy", 0.9),
        ([{"loss": 3.0, "mae": 1.0}, {"loss": 2.0, "mae": 0.5}, {"loss": 4.0, "mae": 2.0}], "validation_loss", 2.0),
        ([{}, {}], "loss", 0.1),
    ],
)
def test_the_best_value_of_what_counts_is_that_of_all_epochs(
    directory: Path, writer: RunWriter, metrics: list[dict[str, float]], monitor: str, best: float
) -> None:
    writer.begin()
    run = summary_of(writer, *metrics)
    assert (run.monitor, run.best) == (monitor, best)


def test_the_metric_that_counts_can_be_named() -> None:
    directory = create(Plan(monitor="val_mae"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        run = summary_of(writer, {"loss": 1.0, "mae": 0.25}, {"loss": 0.5, "mae": 0.75})
    assert (run.monitor, run.best) == ("validation_mae", 0.25)


def test_a_metric_whose_name_does_not_tell_which_way_is_better_has_no_best() -> None:
    directory = create(Plan(monitor="validation_temperature"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        assert summary_of(writer, {"loss": 1.0, "temperature": 0.25}).best is None


def test_the_best_value_is_the_one_of_early_stopping() -> None:
    values = [{"loss": 1.0}, {"loss": 0.5}, {"loss": 0.4}]
    for min_delta, best in ((0.0, 0.4), (0.2, 0.5)):
        with closing(RunWriter(create(Plan(patience=5, min_delta=min_delta)))) as writer:
            writer.begin()
            assert summary_of(writer, *values).best == best


def test_what_came_after_the_checkpoint_of_a_continued_run_does_not_count() -> None:
    with closing(RunWriter(create(Plan()))) as writer:
        writer.begin()
        summary_of(writer, {"loss": 1.0}, {"loss": 0.5}, {"loss": 0.4})
        writer.write_event(started(first_step=2))
        run = list_runs()[0]
    assert run.best == 0.5
    assert run.metrics == {"loss": 0.2, "validation_loss": 0.5}


def test_a_loop_without_epochs_has_its_own_values_after_a_part_with_epochs() -> None:
    with closing(RunWriter(create_recorded({"name": "loops"}, "accel-tui run loops.py", launched=True))) as writer:
        writer.begin()
        writer.write_event(PartStarted(time=1.0, part=1, name="first", step=0, epoch=0))
        writer.write_chunk(0, 1.0, 2.0, {"loss": [6.0, 0.25], "norm": [1.0, 1.0]})
        validated = {"loss": 5.5}
        writer.write_event(EpochEnded(time=2.0, epoch=1, step=2, metrics={"loss": 5.0, "norm": 1.0}, seconds=1.0))
        writer.write_event(PartStarted(time=3.0, part=2, name="second", step=2, epoch=1))
        before = list_runs()[0]
        writer.write_chunk(2, 3.0, 4.0, {"loss": [4.0, *[3.0] * 200, 0.5, 2.0]})
        run = list_runs()[0]
        writer.write_event(Validated(time=2.0, epoch=1, step=2, metrics=validated, seconds=0.0))
        judged = list_runs()[0]
    assert (before.metrics, before.of_epoch, before.best) == ({"loss": 5.0, "norm": 1.0}, True, 5.0)
    assert (run.metrics, run.of_epoch, run.best) == ({"loss": 2.0, "norm": 1.0}, False, 0.5)
    assert (judged.monitor, judged.best) == ("validation_loss", 5.5)


def test_the_start_of_a_run_is_the_time_to_its_first_step(directory: Path, writer: RunWriter) -> None:
    assert listing.start_seconds(directory) == 0.0
    for engine, (begun, first) in enumerate(((100.0, 130.0), (200.0, 205.0))):
        writer.write_event(started(time=begun))
        for at in (first, first + 1.0):
            writer.write_chunk(2 * engine + int(at > first), at, at + 1.0, {"loss": [1.0]})
    assert listing.start_seconds(directory) == 35.0
    assert listing.start_seconds(directory / "none") == 0.0
